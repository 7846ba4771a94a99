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

    /// The one of this module and limit that was used last: what it touched may still be in the processor's caches.
    pub(crate) fn take(&self, module: &Arc<Module>, memory_limit: u64) -> Option<Instance> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |one: &Idle| {
            one.memory_limit == memory_limit && one.module.as_ptr() == Arc::as_ptr(module)
        };
        let at = idle.iter().rposition(is_it)?;
        idle.remove(at).map(|one| one.instance)
    }

    /// Keeps it for the next call. Those of modules that are no more go, and what is too much.
    pub(crate) fn put(&self, module: &Arc<Module>, instance: Instance) {
        let mut gone = Vec::new();
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push_back(Idle {
            module: Arc::downgrade(module),
            memory_limit: instance.store.data().limiter.limit(),
            instance,
        });
        while idle.len() > self.room {
            gone.extend(idle.pop_front());
        }
        let mut at = 0;
        while at < idle.len() {
            match idle.get(at) {
                Some(one) if one.module.strong_count() == 0 => gone.extend(idle.remove(at)),
                _ => at += 1,
            }
        }
        drop(idle);
        // Their memory is given back outside of the lock.
        drop(gone);
    }
}
