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
mod history;
mod linear;

use crate::history::Count;

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
