//! The program `configurator`, as people and machines meet it: what it says, when it stops, what it leaves behind.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod cache;
mod demo;
mod disk;
mod embedding;
mod flows;
mod kubectl;
mod logs;
mod memory;
mod offline;
mod place;
mod probes;
mod refusals;
mod rollback;
mod sets;
mod settings;
mod simulating;
mod stopping;
mod traces;
mod web;
