//! Modules from registries of OCI artifacts and from ConfigMaps. The registry is a real one.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod bench;
mod config_maps;
mod guard;
mod liars;
mod logins;
mod policies;
mod program;
mod signatures;
mod storm;
mod tags;
