//! `deploy/` and `configurator rbac`: what is printed, what a real cluster makes of it, and that it is enough.
//!
//! `cargo xtask test` builds Helm; kubectl is on the PATH.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod chart;
mod cluster;
mod kustomize;
mod least;
mod rights;
