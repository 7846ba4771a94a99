//! Machines: phases, trees and flows on a host, with states that are stored.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod books;
mod control;
mod failures;
mod flows;
mod lineage;
mod phases;
mod requesters;
mod restarts;
mod stores;
mod things;
mod trust;
mod waits;
