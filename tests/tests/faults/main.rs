//! Whole hosts at real servers that are refused, cut off, slowed, stopped or killed. Whatever happens, all ends as
//! without it, for few requests more, and nothing that had succeeded is done again. What is held to that is what the
//! servers themselves have recorded, never what the host says of itself.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod clocks;
mod connections;
mod kubernetes;
mod refusals;
mod scene;
mod stores;
mod storms;
mod tokens;
mod watches;
