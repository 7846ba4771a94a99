//! The configurators that prove mode `Machine`, from their first phase to their last, on embedded and on real servers.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod migration;
mod move_to_vpc;
