//! A small cloud over HTTP, as `configurators/move-to-vpc` knows it: accounts, private networks, instances with network interfaces, and
//! public addresses.
//!
//! Changes are operations that take their time and are asked for until they are over. What is asked for twice under one
//! `Idempotency-Key` takes effect once, but for public addresses: their service is older, and takes each order as it comes. The cloud
//! throttles, has quotas, and does things by halves, as its [`Manners`] say.

mod network;
mod service;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub use network::{Address, Instance, Interface, Network, Subnet};

/// The account that everything belongs to.
pub const APP_ID: &str = "1250000001";
/// Its identity.
pub const UIN: &str = "100000000001";
/// Its access key.
pub const SECRET_ID: &str = "AKID-of-the-test";
/// The other half of the access key.
pub const SECRET_KEY: &str = "the-key-that-nobody-may-see";

/// How the cloud behaves.
#[derive(Debug, Clone)]
pub struct Manners {
    /// How long an operation takes.
    pub latency: Duration,
    /// Every so many requests one is refused with 429; 0: none.
    pub throttle_every: usize,
    /// How many times an attachment of several interfaces stops half-way.
    pub partial_attachments: usize,
    /// How many interfaces there may be beside the first of each instance.
    pub quota: usize,
}

impl Default for Manners {
    fn default() -> Self {
        Self {
            latency: Duration::from_millis(20),
            throttle_every: 0,
            partial_attachments: 0,
            quota: 100,
        }
    }
}

/// A cloud under way. It goes on while hosts come and go.
pub struct Cloud {
    /// Where it is, as `http://127.0.0.1:4711`.
    pub url: String,
    /// As capabilities and settings name it.
    pub host: String,
    state: Arc<Mutex<State>>,
    serving: JoinHandle<()>,
}

/// What the cloud has.
struct State {
    manners: Manners,
    vpcs: BTreeMap<String, Network>,
    instances: BTreeMap<String, Instance>,
    interfaces: BTreeMap<String, Interface>,
    addresses: BTreeMap<String, Address>,
    operations: BTreeMap<String, Operation>,
    /// What was answered, by idempotency key.
    answered: BTreeMap<String, (u16, Value)>,
    /// What has taken effect, in order.
    effects: Vec<String>,
    requests: usize,
    made: usize,
}

/// A change that takes its time.
struct Operation {
    due: Instant,
    took: Duration,
    /// What it came to, or why it failed.
    result: Result<Value, Refusal>,
}

/// Why the cloud does not do something.
#[derive(Debug, Clone)]
struct Refusal {
    status: u16,
    code: &'static str,
    message: String,
}

impl Cloud {
    /// A cloud with the networks `vpc-old` and `vpc-new` of two subnets each, and in the old one so many instances, each with a second
    /// interface that has a public address.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn start(instances: usize, manners: Manners) -> Result<Self> {
        Self::start_behind(instances, manners, |_, _| true).await
    }

    /// As [`start`](Self::start). Each request is shown to `passes` before it has taken effect (`true`) and after; where that says no, the
    /// connection breaks off.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub async fn start_behind(
        instances: usize,
        manners: Manners,
        passes: impl Fn(&str, bool) -> bool + Send + Sync + 'static,
    ) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let host = listener.local_addr()?.to_string();
        let state = Arc::new(Mutex::new(State::new(instances, manners)));
        let serving = tokio::spawn(service::serve(listener, state.clone(), Arc::new(passes)));
        Ok(Self {
            url: format!("http://{host}"),
            host,
            state,
            serving,
        })
    }

    /// Where each instance is and what it has, by its id: network, then interfaces with their addresses.
    #[must_use]
    pub fn instances(&self) -> Vec<String> {
        let state = self.state();
        let instances = state.instances.values();
        let line = |instance: &Instance| {
            let mut line = format!("{}: {}", instance.id, instance.vpc);
            for interface in state.interfaces.values() {
                if interface.instance.as_deref() == Some(&instance.id) {
                    let public = state
                        .addresses
                        .values()
                        .find(|address| address.interface.as_deref() == Some(&interface.id));
                    let public = public.map(|address| format!(" ({})", address.id));
                    line += &format!(", {}{}", interface.ip, public.unwrap_or_default());
                }
            }
            line
        };
        instances.map(line).collect()
    }

    /// What has taken effect, in the order in which it did.
    #[must_use]
    pub fn effects(&self) -> Vec<String> {
        self.state().effects.clone()
    }

    /// Requests so far.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.state().requests
    }

    /// Changes how it behaves.
    pub fn behave(&self, change: impl FnOnce(&mut Manners)) {
        change(&mut self.state().manners);
    }

    /// Changes an instance.
    ///
    /// # Panics
    /// When there is none of this id.
    #[expect(clippy::expect_used, reason = "a slip of the test")]
    pub fn change(&self, instance: &str, change: impl FnOnce(&mut Instance)) {
        change(
            self.state()
                .instances
                .get_mut(instance)
                .expect("no such instance"),
        );
    }

    /// The networks belong to this account.
    pub fn give_networks_to(&self, app_id: &str) {
        for network in self.state().vpcs.values_mut() {
            app_id.clone_into(&mut network.app_id);
        }
    }

    /// Somebody else takes an address of a network.
    ///
    /// # Panics
    /// When there is no such network.
    #[expect(clippy::expect_used, reason = "a slip of the test")]
    pub fn occupy(&self, vpc: &str, ip: &str) {
        let mut state = self.state();
        let network = state.vpcs.get_mut(vpc).expect("no such network");
        network.occupied.insert(ip.to_owned());
    }

    /// Who has taken an address gives it back.
    pub fn free(&self, vpc: &str, ip: &str) {
        if let Some(network) = self.state().vpcs.get_mut(vpc) {
            network.occupied.remove(ip);
        }
    }

    /// The order of a public address is given, as a person does in the console.
    ///
    /// # Panics
    /// When there is no such address, or no interface has this private address.
    #[expect(clippy::expect_used, reason = "a slip of the test")]
    pub fn bind_by_hand(&self, address: &str, ip: &str) {
        let mut state = self.state();
        let interface = state
            .interfaces
            .values()
            .find(|interface| interface.ip == ip && interface.vpc == "vpc-new")
            .map(|interface| interface.id.clone());
        let address = state.addresses.get_mut(address).expect("no such address");
        address.interface = Some(interface.expect("no such interface"));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Cloud {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl State {
    fn new(instances: usize, manners: Manners) -> Self {
        let mut state = Self {
            manners,
            vpcs: BTreeMap::new(),
            instances: BTreeMap::new(),
            interfaces: BTreeMap::new(),
            addresses: BTreeMap::new(),
            operations: BTreeMap::new(),
            answered: BTreeMap::new(),
            effects: Vec::new(),
            requests: 0,
            made: 0,
        };
        for name in ["old", "new"] {
            let network = Network::of_two_subnets(name);
            state.vpcs.insert(network.id.clone(), network);
        }
        for number in 1..=instances {
            state.add_instance(number);
        }
        state
    }

    fn add_instance(&mut self, number: usize) {
        let instance = Instance {
            id: format!("ins-{number}"),
            vpc: "vpc-old".into(),
            subnet: "old-a".into(),
            is_running: true,
        };
        for (kind, subnet, net) in [("first", "old-a", 1), ("second", "old-b", 2)] {
            let interface = Interface {
                id: format!("eni-{number}-{kind}"),
                vpc: "vpc-old".into(),
                subnet: subnet.into(),
                ip: format!("10.0.{net}.{}", 10 + number),
                instance: Some(instance.id.clone()),
                is_first: kind == "first",
            };
            self.interfaces.insert(interface.id.clone(), interface);
        }
        let address = Address {
            id: format!("eip-{number}"),
            interface: Some(format!("eni-{number}-second")),
        };
        self.addresses.insert(address.id.clone(), address);
        self.instances.insert(instance.id.clone(), instance);
    }

    /// Addresses of a network that are taken.
    fn taken(&self, vpc: &str) -> BTreeSet<String> {
        let others = self
            .vpcs
            .get(vpc)
            .map(|network| network.occupied.clone())
            .unwrap_or_default();
        let own = self
            .interfaces
            .values()
            .filter(|interface| interface.vpc == vpc)
            .map(|interface| interface.ip.clone());
        others.into_iter().chain(own).collect()
    }

    /// Begins an operation that comes to this.
    fn operate(&mut self, result: Result<Value, Refusal>) -> Value {
        self.made += 1;
        let id = format!("op-{}", self.made);
        let took = self.manners.latency;
        let operation = Operation {
            due: Instant::now() + took,
            took,
            result,
        };
        self.operations.insert(id.clone(), operation);
        json!({"operation": id})
    }
}

impl Refusal {
    fn new(status: u16, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
        }
    }

    fn body(&self) -> Value {
        json!({"code": self.code, "message": self.message})
    }
}
