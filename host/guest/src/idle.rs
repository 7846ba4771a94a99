//! Instances that have served a call and may serve another.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use wasmtime::Store;

use crate::module::Module;
use crate::state::CallState;
use crate::v0_1::Live;

/// An instance, and what it has of the host.
pub(crate) struct Instance {
    pub(crate) store: Store<CallState>,
    pub(crate) live: Live,
    /// Calls that it has served.
    pub(crate) calls: u32,
}

/// The instances that wait for their next call. At most so many: the one that has waited longest goes first.
pub(crate) struct IdleInstances {
    room: usize,
    idle: Mutex<VecDeque<Idle>>,
}

struct Idle {
    module: Weak<Module>,
    /// Whose calls it has served: what they have left in its memory is for nobody else.
    owner: u128,
    /// Its memory is held under the limit of its first call.
    memory_limit: u64,
    instance: Instance,
}

impl IdleInstances {
    pub(crate) const fn new(room: usize) -> Self {
        Self {
            room,
            idle: Mutex::new(VecDeque::new()),
        }
    }

    /// The one of this module, owner and limit that was used last: what it touched may still be in the processor's caches.
    pub(crate) fn take(
        &self,
        module: &Arc<Module>,
        owner: u128,
        memory_limit: u64,
    ) -> Option<Instance> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |one: &Idle| {
            one.memory_limit == memory_limit
                && one.owner == owner
                && one.module.as_ptr() == Arc::as_ptr(module)
        };
        let at = idle.iter().rposition(is_it)?;
        idle.remove(at).map(|one| one.instance)
    }

    /// Keeps an instance for the next call of its owner, with no more memory than it uses. The oldest instances beyond the limit are
    /// dropped.
    pub(crate) fn put(&self, module: &Arc<Module>, owner: u128, mut instance: Instance) {
        instance.store.data_mut().limiter.return_unused();
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push_back(Idle {
            module: Arc::downgrade(module),
            owner,
            memory_limit: instance.store.data().limiter.limit(),
            instance,
        });
        let surplus = idle.len().saturating_sub(self.room);
        let gone: Vec<Idle> = idle.drain(..surplus).collect();
        drop(idle);
        // Their memory is given back outside of the lock.
        drop(gone);
    }

    /// Drops the instance that has been idle the longest. Returns whether there was one.
    pub(crate) fn evict(&self) -> bool {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let oldest = idle.pop_front();
        // Its memory is given back outside of the lock.
        drop(idle);
        oldest.is_some()
    }

    /// Gives back the memory of instances whose module is no more.
    pub(crate) fn purge(&self) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let is_gone = |one: &Idle| one.module.strong_count() == 0;
        let (gone, left): (VecDeque<Idle>, VecDeque<Idle>) =
            std::mem::take(&mut *idle).into_iter().partition(is_gone);
        *idle = left;
        drop(idle);
        drop(gone);
    }

    /// Returns the number of idle instances.
    pub(crate) fn len(&self) -> usize {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.len()
    }
}
