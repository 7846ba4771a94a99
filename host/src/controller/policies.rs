//! What the ConfiguratorPolicies of the cluster allow the Configurators of each namespace, as it is now.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use configurator_core::authorization::AuthorizedOperation;
use configurator_core::ceiling::Ceiling;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::result::Answer;
use futures::StreamExt as _;
use kube::api::Api;
use kube::core::{DeserializeGuard, Selector, SelectorExt as _};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt as _, watcher as watch_kind};
use kube::{Client, ResourceExt as _};
use tokio::sync::watch;

use super::namespaces::{KnownNamespace, NamespaceSet, Namespaces};
use crate::cluster::WatchBackoff;
use crate::declaration::policy::{Policy, PolicyLimits, selector};
use crate::objects;
use crate::resource::policy::ConfiguratorPolicy;
use crate::sinks::{Scope, Sink, Sinks};
use crate::tasks::Tasks;

/// How long it is waited for the policies when a Configurator is loaded.
const PATIENCE: Duration = Duration::from_secs(5);

/// What holds for a namespace that no ConfiguratorPolicy selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unselected {
    /// Its Configurators do not run.
    Denied,
    /// The policy of the host alone limits them.
    Allowed,
}

/// What holds for the Configurators of a namespace.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NamespacePolicy {
    /// The uid of the namespace that it holds for; empty for ClusterConfigurators, and if the namespace is not known.
    pub(crate) uid: String,
    /// Why they do not run.
    pub(crate) denied: Option<String>,
    /// What their requests may do at most.
    pub(crate) ceiling: Arc<Ceiling>,
    /// Their limits.
    pub(crate) limits: PolicyLimits,
    /// The ServiceAccount of those that name none.
    pub(crate) service_account: Option<String>,
    policies: Vec<(String, Arc<Policy>)>,
}

impl NamespacePolicy {
    fn of_host(ceiling: Arc<Ceiling>) -> Self {
        Self {
            uid: String::new(),
            denied: None,
            ceiling,
            limits: PolicyLimits::default(),
            service_account: None,
            policies: Vec::new(),
        }
    }

    fn denied(ceiling: Arc<Ceiling>, why: String) -> Self {
        Self {
            denied: Some(why),
            ..Self::of_host(ceiling)
        }
    }

    /// The first policy that does not let a Configurator act as this ServiceAccount.
    pub(crate) fn forbids_account(&self, name: &str) -> Option<&str> {
        let forbids = self
            .policies
            .iter()
            .find(|(_, policy)| !policy.allows_account(name));
        forbids.map(|(policy, _)| policy.as_str())
    }

    /// Checks that it allows an operation that is about to be sent.
    fn check(&self, operation: &AuthorizedOperation) -> Result<(), Fault> {
        match &self.denied {
            Some(why) => Err(Fault::new(FaultKind::ResourcePermission, why.clone())),
            None => operation.check(&self.ceiling),
        }
    }
}

/// A policy as it was read.
#[derive(Debug, Clone)]
enum Read {
    /// It selects these namespaces. What is wrong with it denies everything in them.
    Known(Selector, Result<Arc<Policy>, String>),
    /// Which namespaces it selects is unknown, so it denies everything in all of them.
    Unknown(String),
}

/// What holds in each namespace.
#[derive(Debug, Default)]
struct Known {
    /// Why nothing is known.
    unknown: Option<String>,
    by_namespace: BTreeMap<String, Arc<NamespacePolicy>>,
}

/// The policies; clones share them.
#[derive(Clone)]
pub(crate) struct Policies {
    host: Arc<NamespacePolicy>,
    unselected: Unselected,
    known: watch::Sender<Arc<Known>>,
}

impl Policies {
    /// Nothing is known yet, so that nothing is allowed in any namespace. `host` is the policy of the host.
    pub(crate) fn new(host: Ceiling, unselected: Unselected) -> Self {
        let unknown = "the ConfiguratorPolicies are not listed yet".to_owned();
        Self {
            host: Arc::new(NamespacePolicy::of_host(Arc::new(host))),
            unselected,
            known: watch::Sender::new(Arc::new(Known {
                unknown: Some(unknown),
                ..Known::default()
            })),
        }
    }

    /// What holds now for the Configurators of a namespace; without one, for ClusterConfigurators, which the policy of the host alone limits.
    pub(crate) fn of(&self, namespace: &str) -> Arc<NamespacePolicy> {
        if namespace.is_empty() {
            return self.host.clone();
        }
        let known = self.known.borrow().clone();
        if let Some(policy) = known.by_namespace.get(namespace) {
            return policy.clone();
        }
        let why = known
            .unknown
            .clone()
            .unwrap_or_else(|| format!("the namespace {namespace} is not known"));
        Arc::new(NamespacePolicy::denied(self.host.ceiling.clone(), why))
    }

    /// What holds for a namespace, once that is known. After 5 s, what is known.
    pub(crate) async fn soon(&self, namespace: &str) -> Arc<NamespacePolicy> {
        let is_known = |known: &Arc<Known>| known.by_namespace.contains_key(namespace);
        if !namespace.is_empty() {
            let mut changes = self.known.subscribe();
            let known = tokio::time::timeout(PATIENCE, changes.wait_for(is_known));
            // Where it is not known in time, `of` says why.
            let _ = known.await;
        }
        self.of(namespace)
    }

    /// The same sinks, which send only what the policies allow at that moment, whenever it was planned.
    pub(crate) fn govern(&self, sinks: Sinks) -> Sinks {
        let govern = |sink| -> Arc<dyn Sink> {
            let policies = self.clone();
            Arc::new(Governed { sink, policies })
        };
        Sinks {
            kubernetes: govern(sinks.kubernetes),
            configstore: govern(sinks.configstore),
            secretstore: govern(sinks.secretstore),
            http: govern(sinks.http),
        }
    }

    /// Told when something has changed for any namespace.
    pub(crate) fn changes(&self) -> PolicyChanges {
        PolicyChanges(self.known.subscribe())
    }

    /// Works out what holds in each namespace.
    fn publish(&self, read: &BTreeMap<String, Read>, namespaces: &NamespaceSet) {
        let of = |(name, namespace): (&String, &KnownNamespace)| {
            let policy = NamespacePolicy {
                uid: namespace.uid.clone(),
                ..self.holds(name, &namespace.labels, read)
            };
            (name.clone(), Arc::new(policy))
        };
        let by_namespace = namespaces.iter().map(of).collect();
        self.known.send_if_modified(|known| {
            if known.unknown.is_none() && known.by_namespace == by_namespace {
                return false;
            }
            *known = Arc::new(Known {
                unknown: None,
                by_namespace,
            });
            true
        });
    }

    fn holds(
        &self,
        namespace: &str,
        labels: &BTreeMap<String, String>,
        read: &BTreeMap<String, Read>,
    ) -> NamespacePolicy {
        let host = &self.host.ceiling;
        let mut policies = Vec::new();
        for (name, read) in read {
            let policy = match read {
                Read::Known(selector, _) if !selector.matches(labels) => continue,
                Read::Known(_, Ok(policy)) => policy.clone(),
                Read::Known(_, Err(why)) | Read::Unknown(why) => {
                    let why = format!("the ConfiguratorPolicy {name} is invalid: {why}");
                    return NamespacePolicy::denied(host.clone(), why);
                }
            };
            policies.push((name.clone(), policy));
        }
        if policies.is_empty() {
            return match self.unselected {
                Unselected::Allowed => NamespacePolicy::of_host(host.clone()),
                Unselected::Denied => {
                    let why = format!(
                        "no ConfiguratorPolicy selects the namespace {namespace}: an administrator of the cluster can create one"
                    );
                    NamespacePolicy::denied(host.clone(), why)
                }
            };
        }
        let mut ceiling = Ceiling::clone(host);
        let mut limits = PolicyLimits::default();
        for (name, policy) in &policies {
            let whose = format!("the ConfiguratorPolicy {name}");
            ceiling = ceiling.lowered(&whose, policy.capabilities_in(namespace));
            limits = limits.lowest(policy.limits);
        }
        let mut accounts = policies.iter().map(|(_, policy)| &policy.service_account);
        NamespacePolicy {
            uid: String::new(),
            denied: None,
            ceiling: Arc::new(ceiling),
            limits,
            service_account: accounts.find_map(Clone::clone),
            policies,
        }
    }
}

/// Whether what holds for namespaces has changed.
#[derive(Clone)]
pub(crate) struct PolicyChanges(watch::Receiver<Arc<Known>>);

impl PolicyChanges {
    /// Returns when something has changed for any namespace.
    pub(crate) async fn next(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending().await
        }
    }
}

/// Follows the policies and the namespaces until the host drains.
pub(crate) async fn run(
    client: Client,
    policies: Policies,
    namespaces: Namespaces,
    seed: u64,
    tasks: Tasks,
) {
    let drain = tasks.drain_token().clone();
    tokio::select! {
        () = drain.cancelled() => {}
        () = follow(&client, &policies, &namespaces, seed) => {}
    }
}

async fn follow(client: &Client, policies: &Policies, namespaces: &Namespaces, seed: u64) {
    let api: Api<DeserializeGuard<ConfiguratorPolicy>> = Api::all(client.clone());
    let mut events = watch_kind(api, watcher::Config::default())
        .backoff(WatchBackoff::new(seed))
        .boxed();
    let mut namespaces = namespaces.subscribe();
    let mut listing = BTreeMap::new();
    let mut read: Option<BTreeMap<String, Read>> = None;
    let mut has_failed = false;
    loop {
        tokio::select! {
            Ok(()) = namespaces.changed() => {}
            Some(event) = events.next() => match event {
                Ok(Event::Init) => listing.clear(),
                Ok(Event::InitApply(policy)) => {
                    let (name, policy) = read_policy(policy);
                    listing.insert(name, policy);
                }
                Ok(Event::InitDone) => {
                    has_failed = false;
                    read = Some(std::mem::take(&mut listing));
                }
                Ok(Event::Apply(policy)) => {
                    let (name, policy) = read_policy(policy);
                    read.get_or_insert_default().insert(name, policy);
                }
                Ok(Event::Delete(policy)) => {
                    read.get_or_insert_default().remove(&policy.name_any());
                }
                Err(failure) => {
                    let error = objects::explained(&failure);
                    if !std::mem::replace(&mut has_failed, true) {
                        tracing::warn!(error, "the ConfiguratorPolicies cannot be watched; the host retries");
                    }
                    if is_refusal(&failure) {
                        read = None;
                    }
                    if read.is_none() {
                        policies.known.send_modify(|known| {
                            let unknown = format!("the ConfiguratorPolicies cannot be read: {error}");
                            *known = Arc::new(Known { unknown: Some(unknown), ..Known::default() });
                        });
                    }
                }
            },
        }
        let all = namespaces.borrow_and_update().clone();
        if let (Some(read), Some(all)) = (&read, all) {
            policies.publish(read, &all);
        }
    }
}

/// Whether the API does not let the policies be read, so that a change of them would not be noticed. An API that cannot be reached changes nothing.
fn is_refusal(error: &watcher::Error) -> bool {
    use watcher::Error::{InitialListFailed, WatchError, WatchStartFailed};
    let code = match error {
        InitialListFailed(kube::Error::Api(status))
        | WatchStartFailed(kube::Error::Api(status)) => status.code,
        WatchError(status) => status.code,
        _ => return false,
    };
    matches!(code, 401 | 403 | 404)
}

fn read_policy(guard: DeserializeGuard<ConfiguratorPolicy>) -> (String, Read) {
    let name = guard.name_any();
    let policy = match guard.0 {
        Ok(policy) => policy,
        Err(error) => return (name, Read::Unknown(error.error)),
    };
    let read = match selector(&policy.spec.namespace_selector) {
        Ok(selector) => {
            let checked = Policy::check(&policy.spec).map(Arc::new);
            Read::Known(selector, checked.map_err(|error| error.to_string()))
        }
        Err(error) => Read::Unknown(error.to_string()),
    };
    if let Read::Known(_, Err(why)) | Read::Unknown(why) = &read {
        tracing::warn!(policy = name, "the ConfiguratorPolicy is invalid: {why}");
    }
    (name, read)
}

struct Governed {
    sink: Arc<dyn Sink>,
    policies: Policies,
}

#[async_trait]
impl Sink for Governed {
    async fn execute(
        &self,
        operation: &AuthorizedOperation,
        scope: &Scope,
    ) -> Result<Answer, Fault> {
        let namespace = &scope.configurator.namespace;
        // What holds for ClusterConfigurators does not change.
        if !namespace.is_empty() {
            self.policies.of(namespace).check(operation)?;
        }
        self.sink.execute(operation, scope).await
    }

    async fn probe(&self) -> Result<(), Fault> {
        self.sink.probe().await
    }
}
