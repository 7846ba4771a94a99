//! Real servers that are not there, not trusted, not willing, or not as they should be: what is said of each, and that
//! everything goes on by itself once the cause has gone.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod access;
mod cluster;
mod front;
mod kinds;
mod rights;
mod stores;
mod writes;
