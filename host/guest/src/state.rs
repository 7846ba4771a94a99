//! What the host keeps of a call while the guest runs.

use crate::limiter::MemoryLimiter;
use crate::log::CallLog;
use crate::wasi::Wasi;

/// The data of a store.
pub(crate) struct CallState {
    pub(crate) limiter: MemoryLimiter,
    pub(crate) log: CallLog,
    pub(crate) wasi: Wasi,
}

impl CallState {
    pub(crate) const fn new(limiter: MemoryLimiter, log: CallLog, wasi: Wasi) -> Self {
        Self { limiter, log, wasi }
    }
}
