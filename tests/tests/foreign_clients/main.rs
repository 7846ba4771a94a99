//! Clients that nobody here wrote: informers of client-go, a manager of controller-runtime, operators of kopf. Each is
//! let loose on the embedded API as it is served, and on a real control plane, and must come to the same.
//!
//! `cargo xtask test` builds them. kubectl has tests of its own, beside the embedded API.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod cluster;
mod informers;
mod kopf;
mod manager;
mod program;
mod typed;
