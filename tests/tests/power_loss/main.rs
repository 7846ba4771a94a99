//! The embedded stores on a disk that loses what was not synced, tears writes, and fails at any operation.
//!
//! Histories are generated: calls that run at the same time, faults, processes that are killed, power losses. Of each is checked that the
//! calls are linearizable: what was acknowledged is there and stays, what was refused is not, nothing is visible by halves; and that whoever
//! watches misses no change, or is told to begin anew. A failure prints the seed; `POWER_LOSS_SEED=…` plays it again.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod api;
mod config;
mod history;
mod linear;
mod secrets;

use configurator_core::fault::Fault;

use crate::history::{Count, Outcome};

/// How a call of a sink's store ended. Only the message of a fault says whether something may have been written.
fn outcome<A>(answer: Result<A, Fault>) -> Outcome<A> {
    match answer {
        Ok(answer) => Outcome::Answer(answer),
        Err(fault) if fault.message.contains("is unknown") => Outcome::Unknown,
        Err(_) => Outcome::Nothing,
    }
}

/// Histories in which nothing goes wrong show nothing.
fn assert_all_happened(count: &Count) {
    let parts = [
        count.acknowledged,
        count.refused,
        count.unknown,
        count.power_losses,
        count.kills,
    ];
    assert!(parts.iter().all(|part| *part > 20), "{count:?}");
}
