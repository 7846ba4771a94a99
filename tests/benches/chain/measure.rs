//! What this process has used, and what it holds.

#![allow(
    unsafe_code,
    reason = "an allocator is unsafe by its trait; this one passes everything on"
)]

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use mimalloc::MiMalloc;
use rustix::time::{ClockId, clock_gettime};

/// The allocator of the program, which also counts while it is told to.
pub struct Counting;

static IS_COUNTING: AtomicBool = AtomicBool::new(false);
static ALLOCATED: AtomicI64 = AtomicI64::new(0);

fn count(bytes: usize, sign: i64) {
    if IS_COUNTING.load(Ordering::Relaxed) {
        ALLOCATED.fetch_add(sign * bytes as i64, Ordering::Relaxed);
    }
}

// SAFETY: everything is passed on as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 1);
        // SAFETY: the caller's promise is the one that is asked for.
        unsafe { MiMalloc.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(layout.size(), -1);
        // SAFETY: as above.
        unsafe { MiMalloc.dealloc(pointer, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 1);
        // SAFETY: as above.
        unsafe { MiMalloc.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(layout.size(), -1);
        count(size, 1);
        // SAFETY: as above.
        unsafe { MiMalloc.realloc(pointer, layout, size) }
    }
}

/// Counts allocations from now on, from nothing.
pub fn count_allocations() {
    ALLOCATED.store(0, Ordering::Relaxed);
    IS_COUNTING.store(true, Ordering::Relaxed);
}

/// Counts no longer.
pub fn stop_counting() {
    IS_COUNTING.store(false, Ordering::Relaxed);
}

/// Bytes that were allocated since counting began, less those that were freed.
pub fn allocated() -> i64 {
    ALLOCATED.load(Ordering::Relaxed)
}

/// CPU time of this process.
pub fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(
        time.tv_sec.unsigned_abs(),
        time.tv_nsec.unsigned_abs() as u32,
    )
}

/// CPU time of another process, to 10 ms.
pub fn cpu_time_of(process: u32) -> Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name of the program, in parentheses, may contain spaces.
    let (_, fields) = stat.rsplit_once(')').context("the fields of a process")?;
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks = ticks.map(str::parse).collect::<Result<Vec<u64>, _>>()?;
    Ok(Duration::from_millis(ticks.iter().sum::<u64>() * 10))
}

/// Resident memory of this process, in bytes.
pub fn resident_bytes() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .context("VmRSS")?;
    let kib: u64 = line.split_whitespace().nth(1).context("VmRSS")?.parse()?;
    Ok(kib * 1024)
}

/// The middle one.
pub fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}
