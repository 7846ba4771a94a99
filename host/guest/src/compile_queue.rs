//! The queue of modules that are to be compiled.

use std::collections::{HashSet, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use configurator_background::owners::{Owner, Owners};

use crate::digest::Digest;

/// Lets a few modules be compiled at a time, in the [order of their owners](Owners), so an owner with many modules does not keep others waiting.
/// No module is compiled twice at a time.
pub(crate) struct CompileQueue {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    free: u32,
    owners: Owners,
    compiling: HashSet<Digest>,
    waiting: VecDeque<Waiting>,
    next_id: u64,
}

struct Waiting {
    id: u64,
    owner: Owner,
    module: Digest,
}

/// A module may be compiled while this lives.
pub(crate) struct Turn<'q> {
    queue: &'q CompileQueue,
    module: Digest,
    owner: Owner,
    since: Instant,
}

impl CompileQueue {
    /// Room for so many compilations at a time.
    pub(crate) fn new(parallel: u32) -> Self {
        Self {
            state: Mutex::new(State {
                free: parallel,
                owners: Owners::default(),
                compiling: HashSet::new(),
                waiting: VecDeque::new(),
                next_id: 0,
            }),
            changed: Condvar::new(),
        }
    }

    /// Waits on this thread for a turn, or until the module is `found` because another has compiled it.
    pub(crate) fn take<T>(
        &self,
        owner: impl Into<Owner>,
        module: Digest,
        found: impl Fn() -> Option<T>,
    ) -> Result<Turn<'_>, T> {
        let owner = owner.into();
        let mut state = self.state();
        let id = state.next_id;
        state.next_id = id.wrapping_add(1);
        state.waiting.push_back(Waiting { id, owner, module });
        loop {
            if let Some(found) = found() {
                state.waiting.retain(|waiting| waiting.id != id);
                drop(state);
                self.changed.notify_all();
                return Err(found);
            }
            if state.next() == Some(id) {
                state.begin(id, owner, module);
                drop(state);
                // There may be room for one more.
                self.changed.notify_all();
                return Ok(Turn {
                    queue: self,
                    module,
                    owner,
                    since: Instant::now(),
                });
            }
            let woken = self.changed.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Returns how many loads wait.
    pub(crate) fn waiting(&self) -> usize {
        self.state().waiting.len()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns the id of the load that may begin now.
    fn next(&self) -> Option<u64> {
        if self.free == 0 {
            return None;
        }
        let waiting = self.waiting.iter();
        let waiting = waiting.filter(|waiting| !self.compiling.contains(&waiting.module));
        let next = waiting.min_by_key(|waiting| (self.owners.rank(waiting.owner), waiting.id));
        next.map(|waiting| waiting.id)
    }

    fn begin(&mut self, id: u64, owner: Owner, module: Digest) {
        self.free = self.free.saturating_sub(1);
        self.owners.begin(owner);
        self.compiling.insert(module);
        self.waiting.retain(|waiting| waiting.id != id);
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.queue.state();
        state.free = state.free.saturating_add(1);
        state.compiling.remove(&self.module);
        state.owners.end(self.owner, self.since.elapsed());
        drop(state);
        self.queue.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the order in which waiting loads get the only turn. Each has an owner and a module.
    #[track_caller]
    fn check(waiting: &[(u128, &str)], expected: &[usize]) {
        let queue = CompileQueue::new(1);
        let order = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            let held = queue.take(0, Digest::of(b"held"), || None::<()>).ok();
            for (index, (owner, module)) in waiting.iter().enumerate() {
                let (queue, order) = (&queue, &order);
                scope.spawn(move || {
                    let turn = queue.take(*owner, Digest::of(module.as_bytes()), || None::<()>);
                    order.lock().unwrap().push(index);
                    drop(turn);
                });
                while queue.waiting() <= index {
                    std::thread::yield_now();
                }
            }
            drop(held);
        });
        assert_eq!(order.into_inner().unwrap(), expected);
        assert_eq!(queue.state().compiling.len(), 0);
    }

    #[test]
    fn owners_take_turns() {
        check(&[(1, "a"), (1, "b"), (1, "c"), (1, "d")], &[0, 1, 2, 3]);
        check(
            &[(1, "a"), (1, "b"), (1, "c"), (2, "d"), (3, "e")],
            &[0, 3, 4, 1, 2],
        );
        check(
            &[(1, "a"), (1, "b"), (2, "c"), (1, "d"), (2, "e")],
            &[0, 2, 1, 4, 3],
        );
        // The owner of the module that was compiled before comes last.
        check(&[(0, "a"), (1, "b")], &[1, 0]);
    }

    #[test]
    fn a_module_that_is_being_compiled_waits_and_others_pass() {
        let queue = CompileQueue::new(2);
        let module = Digest::of(b"module");
        let compiling = queue.take(1, module, || None::<()>).ok();
        std::thread::scope(|scope| {
            let same = scope.spawn(|| queue.take(2, module, || None::<()>).is_ok());
            while queue.waiting() < 1 {
                std::thread::yield_now();
            }
            let other = queue.take(1, Digest::of(b"other"), || None::<()>);
            assert!(other.is_ok());
            assert_eq!(queue.waiting(), 1);
            drop((other, compiling));
            assert!(same.join().unwrap());
        });
    }

    #[test]
    fn whoever_waits_for_a_module_takes_no_turn_once_it_is_there() {
        let queue = CompileQueue::new(1);
        let module = Digest::of(b"module");
        let compiled = &std::sync::atomic::AtomicBool::new(false);
        let compiling = queue.take(1, module, || None::<()>).ok();
        std::thread::scope(|scope| {
            let found = move || {
                let compiled = compiled.load(std::sync::atomic::Ordering::SeqCst);
                compiled.then_some("found")
            };
            let queue = &queue;
            let same = scope.spawn(move || queue.take(2, module, found).err());
            while queue.waiting() < 1 {
                std::thread::yield_now();
            }
            compiled.store(true, std::sync::atomic::Ordering::SeqCst);
            drop(compiling);
            assert_eq!(same.join().unwrap(), Some("found"));
        });
    }
}
