//! The configurators that prove mode `Machine`, from their first phase to their last, on embedded and on real servers.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod clusters;
mod infrastructure;
mod migration;
mod move_to_vpc;
mod shared_storage_cluster;
