//! HTTP requests of handlers, against small servers on this machine.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod addresses;
mod answers;
mod bench;
mod pool;
mod requests;
