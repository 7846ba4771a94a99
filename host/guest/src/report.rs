//! What became of a call.

use std::time::Duration;

use configurator_core::handler::{CallFault, HandlerOutput};

/// The outcome of one call, and what it cost.
#[derive(Debug, Clone, PartialEq)]
pub struct CallReport {
    /// The output, or why there is none.
    pub result: Result<HandlerOutput, CallFault>,
    /// What it cost; all zero for a call that never began.
    pub cost: CallCost,
}

/// What a call cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallCost {
    /// CPU time of the threads that ran it: instantiation, the guest's own work, conversion of input and output.
    pub cpu_time: Duration,
    /// Wall time of the same, without the wait for its turn.
    pub wall_time: Duration,
    /// How long it waited for its turn: see [`GuestOptions::parallel_calls`](crate::options::GuestOptions::parallel_calls).
    pub queue_time: Duration,
    /// The most linear memory that the guest had, in bytes.
    pub memory_peak: u64,
    /// Log lines that were delivered.
    pub log_lines: u32,
    /// Log lines that were dropped because of [`LogLimits`](crate::options::LogLimits).
    pub log_dropped: u64,
}

impl CallReport {
    /// The report of a call that never began.
    pub(crate) fn not_begun(fault: CallFault) -> Self {
        Self {
            result: Err(fault),
            cost: CallCost::default(),
        }
    }
}
