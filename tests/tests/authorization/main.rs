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
mod extension;
mod generate;
mod http;
mod kubernetes;
mod model;
mod server;
mod stores;

use std::sync::Arc;

use configurator_core::authorization::{AuthorizedOperation, Caller, Denied, authorize};
use configurator_core::capability::Capabilities;
use configurator_core::ceiling::Ceiling;
use configurator_core::fault::Fault;
use configurator_core::partition::Partition;
use configurator_core::request::Operation;
use configurator_core::service_account::ServiceAccount;
use configurator_host::sinks::Scope;

use self::chance::Chance;

/// Generated requests to the Kubernetes API.
const KUBERNETES_CASES: u64 = 20_000;
/// Generated requests to each of the two stores.
const STORE_CASES: u64 = 6_000;
/// Generated requests to HTTP endpoints.
const HTTP_CASES: u64 = 3_000;
/// Generated requests to extensions.
const EXTENSION_CASES: u64 = 3_000;
/// The rules that must all allow a request.
#[derive(Debug)]
struct Rules {
    /// Of the Configurator, of the host, and perhaps of a policy.
    early: Vec<Capabilities>,
    /// Of a policy that is made after the request was authorized.
    late: Option<Capabilities>,
}

impl Rules {
    fn new(chance: &mut Chance, mut some: impl FnMut(&mut Chance) -> Capabilities) -> Self {
        let number = 2 + chance.below(2);
        let early = (0..number).map(|_| some(chance)).collect();
        let late = chance.one_in(2).then(|| some(chance));
        Self { early, late }
    }

    /// Authorizes an operation, and checks it again when it is about to be sent, as a host does.
    fn authorize(
        &self,
        operation: &Operation,
        caller: Caller<'_>,
    ) -> Result<AuthorizedOperation, Fault> {
        let [own, host, policies @ ..] = &self.early[..] else {
            panic!("a Configurator and a host have rules");
        };
        let mut ceiling = Ceiling::of_host(Arc::new(host.clone()));
        for policy in policies {
            ceiling = ceiling.lowered("a policy", Arc::new(policy.clone()));
        }
        let authorized = authorize(operation, caller, own, &ceiling).map_err(Denied::into_fault)?;
        if let Some(late) = &self.late {
            authorized.check(&ceiling.lowered("a late policy", Arc::new(late.clone())))?;
        }
        Ok(authorized)
    }

    /// Whether something is sent: by all rules, and by those that came later also what the handler was to see of the answer.
    fn allow<V>(&self, verb: V, get: V, allows: impl Fn(&Capabilities, &V) -> bool) -> bool {
        let early = |verb: &V| self.early.iter().all(|rules| allows(rules, verb));
        let late = |verb: &V| self.late.iter().all(|rules| allows(rules, verb));
        early(&verb) && late(&verb) && (!early(&get) || late(&get))
    }

    /// Whether the handler sees the answer.
    fn show<V>(&self, get: V, allows: impl Fn(&Capabilities, &V) -> bool) -> bool {
        self.early.iter().all(|rules| allows(rules, &get))
    }
}

/// On whose behalf a request is sent: of a ClusterConfigurator, or of a Configurator of a team.
fn scope(chance: &mut Chance) -> Scope {
    if chance.one_in(2) {
        return Scope::default();
    }
    let namespace = chance.pick(&["team-a", "shop"]).to_owned();
    Scope {
        partition: Partition::of_namespace(&namespace, "uid-1"),
        service_account: Some(ServiceAccount {
            namespace,
            name: chance.pick(&["default", "robot"]).to_owned(),
        }),
        ..Scope::default()
    }
}

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
