//! An allocator that never frees.
//!
//! An instance lives for one call, so what is freed within it is seldom worth the work of reusing it. Memory is handed
//! out upwards from the end of the module's data and grown in steps. Only the newest block can be resized in place or
//! given back, which is what a growing `Vec` or `String` mostly is.

/// Bytes of a page of linear memory.
const PAGE: usize = 64 * 1024;

/// Pages to grow by at least. A grow costs the host a system call; untouched pages cost nothing.
const STEP: usize = 16;

/// Where the next block goes. Addresses, not pointers: it is arithmetic, and is tested as such.
#[derive(Debug)]
pub(crate) struct Bump {
    next: usize,
    end: usize,
}

impl Bump {
    pub(crate) const fn new() -> Bump {
        Bump { next: 0, end: 0 }
    }

    /// Takes over `from..to`, the memory that no block has.
    pub(crate) fn start(&mut self, from: usize, to: usize) {
        self.next = from;
        self.end = to;
    }

    pub(crate) fn is_started(&self) -> bool {
        self.end != 0
    }

    /// The address of a new block, or nothing when memory is out. `align` is a power of two.
    ///
    /// `grow` adds pages and returns the address of the first.
    #[inline]
    pub(crate) fn place(
        &mut self,
        size: usize,
        align: usize,
        mut grow: impl FnMut(usize) -> Option<usize>,
    ) -> Option<usize> {
        loop {
            let address = self.next.checked_add(align - 1)? & !(align - 1);
            let after = address.checked_add(size)?;
            if after <= self.end {
                self.next = after;
                return Some(address);
            }
            let missing = (after - self.end).div_ceil(PAGE);
            let (first, pages) = match grow(missing.max(STEP)) {
                Some(first) => (first, missing.max(STEP)),
                None => (grow(missing)?, missing),
            };
            if first != self.end {
                // Someone else grew the memory in between: what is left below is lost.
                self.next = first;
            }
            self.end = first.checked_add(pages.checked_mul(PAGE)?)?;
        }
    }

    /// Resizes the block at `address` in place: the newest, or any that shrinks.
    #[inline]
    pub(crate) fn resize(
        &mut self,
        address: usize,
        old: usize,
        new: usize,
        grow: impl FnMut(usize) -> Option<usize>,
    ) -> bool {
        if new <= old {
            if address + old == self.next {
                self.next = address + new;
            }
            return true;
        }
        if address + old != self.next {
            return false;
        }
        let (next, end) = (self.next, self.end);
        if self.place(new - old, 1, grow) == Some(next) {
            return true;
        }
        if self.end == end {
            self.next = next;
        }
        false
    }

    /// Gives the block back where it is the newest.
    #[inline]
    pub(crate) fn release(&mut self, address: usize, size: usize) {
        if address + size == self.next {
            self.next = address;
        }
    }
}

#[cfg(all(target_arch = "wasm32", feature = "bump-allocator"))]
mod global {
    #![allow(unsafe_code, reason = "an allocator hands out raw memory")]

    use core::alloc::{GlobalAlloc, Layout};
    use core::arch::wasm32::{memory_grow, memory_size};
    use core::cell::UnsafeCell;
    use core::ptr;

    use super::{Bump, PAGE};

    #[global_allocator]
    static GLOBAL: Global = Global(UnsafeCell::new(Bump::new()));

    struct Global(UnsafeCell<Bump>);

    // SAFETY: a module has one thread; the contract's world has no way to start another.
    unsafe impl Sync for Global {}

    unsafe extern "C" {
        /// The end of the module's data and stack; set by the linker. Only its address means anything.
        static __heap_base: u8;
    }

    impl Global {
        #[inline]
        fn bump(&self) -> &mut Bump {
            // SAFETY: one thread, and no method of `Bump` allocates or calls back, so no other borrow is alive.
            let bump = unsafe { &mut *self.0.get() };
            if !bump.is_started() {
                bump.start((&raw const __heap_base).addr(), memory_size(0) * PAGE);
            }
            bump
        }
    }

    fn grow(pages: usize) -> Option<usize> {
        match memory_grow(0, pages) {
            usize::MAX => None,
            before => before.checked_mul(PAGE),
        }
    }

    // SAFETY: `Bump::place` returns memory inside the module's own linear memory, aligned as asked, which no other
    // block has: it only hands out what lies above every block that is in use.
    unsafe impl GlobalAlloc for Global {
        #[inline]
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            match self.bump().place(layout.size(), layout.align(), grow) {
                Some(address) => ptr::with_exposed_provenance_mut(address),
                None => ptr::null_mut(),
            }
        }

        #[inline]
        unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
            self.bump().release(block.addr(), layout.size());
        }

        #[inline]
        unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            if self.bump().resize(block.addr(), layout.size(), size, grow) {
                return block;
            }
            // SAFETY: the caller vouches that `size`, rounded up to the alignment, does not overflow.
            let moved =
                unsafe { self.alloc(Layout::from_size_align_unchecked(size, layout.align())) };
            if !moved.is_null() {
                // SAFETY: both blocks are ours, do not overlap, and hold at least the old size, the smaller of the two.
                unsafe { ptr::copy_nonoverlapping(block, moved, layout.size()) };
            }
            moved
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A memory of at most `limit` pages that starts with one.
    fn memory(limit: usize) -> impl FnMut(usize) -> Option<usize> {
        let mut pages = 1;
        move |more| {
            let before = pages;
            (before + more <= limit).then(|| {
                pages += more;
                before * PAGE
            })
        }
    }

    fn started() -> Bump {
        let mut bump = Bump::new();
        assert!(!bump.is_started());
        bump.start(1000, PAGE);
        assert!(bump.is_started());
        bump
    }

    #[test]
    fn the_newest_block_grows_and_goes_in_place() {
        let (mut bump, mut grow) = (started(), memory(100));
        let a = bump.place(10, 8, &mut grow).unwrap();
        let b = bump.place(10, 8, &mut grow).unwrap();
        assert!(!bump.resize(a, 10, 11, &mut grow));
        assert!(bump.resize(b, 10, 2 * PAGE, &mut grow));
        bump.release(b, 2 * PAGE);
        assert_eq!(bump.place(1, 1, &mut grow), Some(b));
    }

    #[test]
    fn a_block_that_shrinks_stays() {
        let (mut bump, mut grow) = (started(), memory(100));
        let a = bump.place(100, 1, &mut grow).unwrap();
        bump.place(1, 1, &mut grow).unwrap();
        assert!(bump.resize(a, 100, 10, &mut grow));
    }

    #[test]
    fn the_last_page_is_used_when_a_whole_step_is_not_to_be_had() {
        let (mut bump, mut grow) = (started(), memory(2));
        assert_eq!(bump.place(PAGE, 1, &mut grow), Some(1000));
        assert_eq!(bump.place(PAGE, 1, &mut grow), None);
        assert_eq!(
            bump.place(1, 1, &mut grow),
            Some(1000 + PAGE),
            "a refusal leaves the rest usable"
        );
    }

    #[test]
    fn sizes_that_wrap_around_are_refused() {
        let (mut bump, mut grow) = (started(), memory(100));
        assert_eq!(bump.place(usize::MAX - 10, 16, &mut grow), None);
    }

    proptest! {
        #[test]
        fn blocks_are_aligned_and_never_overlap(
            steps in proptest::collection::vec((0_usize..200_000, 0_u32..5, any::<bool>(), 0_usize..300_000), 1..60),
        ) {
            let (mut bump, mut grow) = (started(), memory(500));
            let mut blocks: Vec<(usize, usize)> = Vec::new();
            for (size, align, release, resized) in steps {
                let Some(address) = bump.place(size, 1 << align, &mut grow) else { continue };
                prop_assert_eq!(address % (1 << align), 0);
                prop_assert!(address >= 1000);
                prop_assert!(blocks.iter().all(|(start, len)| address >= start + len));
                if release {
                    bump.release(address, size);
                } else if bump.resize(address, size, resized, &mut grow) {
                    blocks.push((address, resized));
                } else {
                    blocks.push((address, size));
                }
            }
        }
    }
}
