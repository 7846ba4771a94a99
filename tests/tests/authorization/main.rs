//! Generated requests against generated rules. What is sent, and what is seen of the answers, is compared with a slow model of the
//! rules that shares no code with the host.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod chance;
mod generate;
mod http;
mod kubernetes;
mod model;
mod server;
mod stores;

/// Generated requests to the Kubernetes API.
const KUBERNETES_CASES: u64 = 12_000;
/// Generated requests to each of the two stores.
const STORE_CASES: u64 = 2_000;
/// Generated requests to HTTP endpoints.
const HTTP_CASES: u64 = 3_000;
/// Sets the seed of a run, to repeat it.
const SEED: &str = "CONFIGURATOR_TEST_SEED";

/// The seed of this run: one of its own unless the environment names one.
fn seed() -> u64 {
    use std::hash::{BuildHasher as _, Hasher as _};

    let given = std::env::var(SEED).ok().and_then(|text| text.parse().ok());
    let own = || {
        let state = std::collections::hash_map::RandomState::new();
        state.build_hasher().finish()
    };
    let seed = given.unwrap_or_else(own);
    println!("{SEED}={seed}");
    seed
}
