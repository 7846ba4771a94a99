//! From wasmtime's errors to faults.

use std::fmt::Write as _;

use configurator_core::handler::{CallFault, CallLimits};
use wasmtime::{Trap, WasmBacktrace};

use crate::deadline::DeadlineExceeded;
use crate::limiter::MemoryExceeded;
use crate::state::CallState;

/// Frames of the guest that a message shows.
const FRAMES: usize = 8;

/// Room for what a value takes on the host beyond its bytes: a list of empty texts is larger here than in the guest.
const OVERHEAD: u64 = 1 << 20;

/// How many bytes one transfer from the guest may take on the host, before they are counted exactly.
///
/// wasmtime checks it before it copies, so a guest that returns far too much costs nothing.
pub(crate) fn transfer_limit(limits: &CallLimits) -> usize {
    let bytes = limits
        .output_size
        .saturating_mul(4)
        .saturating_add(OVERHEAD);
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Why the guest did not return.
pub(crate) fn classify(
    error: &wasmtime::Error,
    limits: &CallLimits,
    state: &CallState,
) -> CallFault {
    let backtrace = error.downcast_ref::<WasmBacktrace>();
    let with_tail = |cause: String| message(cause, backtrace, state);
    if let Some(exceeded) = error.downcast_ref::<DeadlineExceeded>() {
        return CallFault::Deadline {
            deadline: limits.deadline,
            message: with_tail(exceeded.to_string()),
        };
    }
    if let Some(exceeded) = error.downcast_ref::<MemoryExceeded>() {
        return CallFault::Memory {
            limit: state.limiter.limit(),
            message: with_tail(exceeded.to_string()),
        };
    }
    if error.downcast_ref::<Trap>() == Some(&Trap::StackOverflow) {
        return CallFault::Stack {
            message: with_tail("too many nested calls".into()),
        };
    }
    if error.is::<wasmtime::PoolConcurrencyLimitError>() {
        return CallFault::Host {
            message: causes(error),
        };
    }
    // Without frames of the guest the failure came after it had returned: its output could not be read.
    if backtrace.is_none() && !error.is::<Trap>() {
        let cause = error.root_cause().to_string();
        return if cause.contains("too much data is being copied") {
            CallFault::OutputTooLarge {
                size: transfer_limit(limits) as u64,
                limit: limits.output_size,
            }
        } else {
            CallFault::Trap {
                message: with_tail(cause),
            }
        };
    }
    CallFault::Trap {
        message: with_tail(causes(error)),
    }
}

/// The causes without the backtrace, outermost first.
fn causes(error: &wasmtime::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        if cause.starts_with("error while executing at wasm backtrace") {
            continue;
        }
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(&cause);
    }
    text
}

fn message(mut text: String, backtrace: Option<&WasmBacktrace>, state: &CallState) -> String {
    if let Some(backtrace) = backtrace {
        // Its text has a heading, then one frame a line: `0: module!function`.
        let frames = backtrace.to_string();
        for frame in frames.lines().skip(1).take(FRAMES) {
            let function = frame
                .split_once(": ")
                .map_or(frame, |(_, function)| function);
            let _ = write!(text, "\n  in {}", function.trim());
        }
        let more = backtrace.frames().len().saturating_sub(FRAMES);
        if more > 0 {
            let _ = write!(text, "\n  … and {more} more");
        }
    }
    let tail = state.log.tail();
    if !tail.is_empty() {
        let _ = write!(text, "\nthe end of its log:\n{tail}");
    }
    text
}
