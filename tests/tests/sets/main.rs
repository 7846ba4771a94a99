//! Desired sets, and requests that wait for one another: each test runs on the embedded API and on a real one.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod abandonment;
mod apply;
mod deletion;
mod ending;
mod failures;
mod idle;
mod imports;
mod kills;
mod kinds;
mod machines;
mod orders;
mod ownership;
mod pages;
mod pre_terminate;
mod progress;
mod prune;
mod readiness;
mod requests;
mod scene;
mod stores;
mod suspend;
mod watches;
