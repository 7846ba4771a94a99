//! Configurators of teams, each in its namespace, beside one of the whole cluster.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod partitions;
mod scopes;
