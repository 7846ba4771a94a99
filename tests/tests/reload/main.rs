//! A module is swapped while its runs are under way.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

#[path = "../../../host/guest/tests/fixture/mod.rs"]
mod fixture;

mod canary;
mod files;
mod machine;
mod restart;
mod storm;
mod swap;
