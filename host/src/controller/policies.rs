//! Evaluates the ConfiguratorPolicies of the cluster for each namespace.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use configurator_core::authorization::AuthorizedOperation;
use configurator_core::ceiling::Ceiling;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::result::Answer;
use configurator_core::service_account::ServiceAccount;
use futures::StreamExt as _;
use kube::ResourceExt as _;
use kube::api::Api;
use kube::core::{DeserializeGuard, Selector, SelectorExt as _};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt as _, watcher as watch_kind};
use tokio::sync::watch;

use super::namespaces::{KnownNamespace, NamespaceSet};
use super::quota_usage::QuotaUsage;
use crate::cluster::WatchBackoff;
use crate::declaration::policy::{Policy, PolicyLimits, Quotas, lower, selector};
use crate::declaration::{self, DeclarationError};
use crate::host::Shared;
use crate::kubernetes_faults::watch_status;
use crate::module_source::ModulePolicies;
use crate::objects;
use crate::resource::Configurator;
use crate::resource::policy::ConfiguratorPolicy;
use crate::sinks::{Scope, Sink, Sinks};

/// The longest wait for the policies when a Configurator is loaded.
const PATIENCE: Duration = Duration::from_secs(5);

/// The effect if no ConfiguratorPolicy selects a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unselected {
    /// The Configurators of the namespace do not run.
    Denied,
    /// Only the policy of the host limits its Configurators.
    Allowed,
}

/// The combined policy for the Configurators of a namespace.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NamespacePolicy {
    /// The uid of the namespace. Empty for ClusterConfigurators, and for an unknown namespace.
    pub(crate) uid: String,
    /// Why no Configurator of the namespace may run, if none may.
    pub(crate) denied: Option<String>,
    /// Limits their requests.
    pub(crate) ceiling: Arc<Ceiling>,
    /// Limits their resource usage.
    pub(crate) limits: PolicyLimits,
    /// Which modules they may run.
    pub(crate) modules: ModulePolicies,
    /// Its share of the CPU time of modules, relative to other namespaces.
    pub(crate) weight: u32,
    /// Limits what its Configurators use together.
    pub(crate) quotas: Quotas,
    /// The default ServiceAccount.
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
            modules: ModulePolicies::default(),
            weight: 1,
            quotas: Quotas::default(),
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

    /// Returns the ServiceAccount that a Configurator acts as; none if it acts as the host.
    ///
    /// # Errors
    /// When the Configurator states an invalid name.
    pub(crate) fn account_of(
        &self,
        resource: &Configurator,
    ) -> Result<Option<ServiceAccount>, DeclarationError> {
        let mut account = declaration::service_account(resource)?;
        if resource.spec.service_account_name.is_none()
            && let (Some(account), Some(default)) = (&mut account, &self.service_account)
        {
            account.name.clone_from(default);
        }
        Ok(account)
    }

    /// Returns the first policy that forbids this ServiceAccount.
    pub(crate) fn forbids_account(&self, name: &str) -> Option<&str> {
        let forbids = self
            .policies
            .iter()
            .find(|(_, policy)| !policy.allows_account(name));
        forbids.map(|(policy, _)| policy.as_str())
    }

    /// Returns whether older Configurators use up the quota of Configurators.
    pub(crate) fn exceeds_configurators(
        &self,
        usage: &QuotaUsage,
        resource: &Configurator,
    ) -> bool {
        let older = || usage.older(&resource.key(), &resource.metadata);
        let quota = self.quotas.configurators;
        quota.is_some_and(|quota| older() >= quota)
    }

    /// Returns the number of objects that older Configurators leave of the quota of objects; `None` without such a quota.
    pub(crate) fn objects_left(&self, usage: &QuotaUsage, resource: &Configurator) -> Option<u64> {
        let quota = self.quotas.objects?;
        let older = usage.objects_of_older(&resource.key(), &resource.metadata);
        Some(quota.saturating_sub(older))
    }

    /// Checks that it allows this operation.
    fn check(&self, operation: &AuthorizedOperation) -> Result<(), Fault> {
        match &self.denied {
            Some(why) => Err(Fault::new(FaultKind::ResourcePermission, why.clone())),
            None => operation.check(&self.ceiling),
        }
    }
}

/// A ConfiguratorPolicy after parsing.
#[derive(Debug, Clone)]
enum ParsedPolicy {
    /// Selects these namespaces. If the policy has an error, it denies everything in them.
    Known(Selector, Result<Arc<Policy>, String>),
    /// The selector has an error, so the policy denies everything in all namespaces.
    Unknown(String),
}

/// The combined policies of all namespaces.
#[derive(Debug, Default)]
struct Known {
    /// Why the policies are unknown, if they are.
    unknown: Option<String>,
    by_namespace: BTreeMap<String, Arc<NamespacePolicy>>,
}

/// Evaluates policies. Clones share the result.
#[derive(Clone)]
pub(crate) struct Policies {
    host: Arc<NamespacePolicy>,
    unselected: Unselected,
    known: watch::Sender<Arc<Known>>,
}

impl Policies {
    /// Creates an evaluator that denies everything in all namespaces until the policies are listed. `host` is the policy of the host.
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

    /// Returns the current policy for a namespace. An empty namespace stands for ClusterConfigurators, which only the policy of the host limits.
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

    /// Waits up to 5 s until the policy for a namespace is known, and returns the current one.
    pub(crate) async fn wait_for(&self, namespace: &str) -> Arc<NamespacePolicy> {
        let is_known = |known: &Arc<Known>| known.by_namespace.contains_key(namespace);
        if !namespace.is_empty() {
            let mut changes = self.known.subscribe();
            let known = tokio::time::timeout(PATIENCE, changes.wait_for(is_known));
            // If this times out, `of` explains why.
            let _ = known.await;
        }
        self.of(namespace)
    }

    /// Wraps the sinks, so that they check each request against the current policies when they send it.
    pub(crate) fn govern(&self, sinks: Sinks) -> Sinks {
        let govern = |sink| -> Arc<dyn Sink> {
            let policies = self.clone();
            Arc::new(PolicyGuard { sink, policies })
        };
        Sinks {
            kubernetes: govern(sinks.kubernetes),
            configstore: govern(sinks.configstore),
            secretstore: govern(sinks.secretstore),
            http: govern(sinks.http),
            extension: govern(sinks.extension),
        }
    }

    /// Subscribes to changes of any policy.
    pub(crate) fn changes(&self) -> PolicyChanges {
        PolicyChanges(self.known.subscribe())
    }

    /// Evaluates the policies for each namespace.
    fn publish(&self, read: &BTreeMap<String, ParsedPolicy>, namespaces: &NamespaceSet) {
        let of = |(name, namespace): (&String, &KnownNamespace)| {
            let policy = NamespacePolicy {
                uid: namespace.uid.clone(),
                ..self.evaluate(name, &namespace.labels, read)
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

    fn evaluate(
        &self,
        namespace: &str,
        labels: &BTreeMap<String, String>,
        read: &BTreeMap<String, ParsedPolicy>,
    ) -> NamespacePolicy {
        let host = &self.host.ceiling;
        let mut policies = Vec::new();
        for (name, read) in read {
            let policy = match read {
                ParsedPolicy::Known(selector, _) if !selector.matches(labels) => continue,
                ParsedPolicy::Known(_, Ok(policy)) => policy.clone(),
                ParsedPolicy::Known(_, Err(why)) | ParsedPolicy::Unknown(why) => {
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
        let mut quotas = Quotas::default();
        let mut weight = None;
        for (name, policy) in &policies {
            let whose = format!("the ConfiguratorPolicy {name}");
            ceiling = ceiling.lowered(&whose, policy.capabilities_in(namespace));
            limits = limits.lowest(policy.limits);
            quotas = quotas.lowest(policy.quotas);
            weight = lower(weight, policy.weight);
        }
        let modules = policies.iter().map(|(_, policy)| policy.modules.clone());
        let modules = modules.collect();
        let mut accounts = policies.iter().map(|(_, policy)| &policy.service_account);
        NamespacePolicy {
            uid: String::new(),
            denied: None,
            ceiling: Arc::new(ceiling),
            limits,
            modules,
            weight: weight.unwrap_or(1),
            quotas,
            service_account: accounts.find_map(Clone::clone),
            policies,
        }
    }
}

/// A subscription to policy changes.
#[derive(Clone)]
pub(crate) struct PolicyChanges(watch::Receiver<Arc<Known>>);

impl PolicyChanges {
    /// Waits for the next change.
    pub(crate) async fn next(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending().await
        }
    }
}

/// Watches the policies, and the namespaces that they select.
pub(crate) async fn run(shared: Arc<Shared>) {
    let Shared {
        client,
        policies,
        namespaces,
        seed,
        ..
    } = &*shared;
    let api: Api<DeserializeGuard<ConfiguratorPolicy>> = Api::all(client.clone());
    let mut events = watch_kind(api, watcher::Config::default())
        .backoff(WatchBackoff::new(*seed))
        .boxed();
    let mut namespaces = namespaces.subscribe();
    let mut listing = BTreeMap::new();
    let mut read: Option<BTreeMap<String, ParsedPolicy>> = None;
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

/// Whether the API server refuses access to the policies. The host would miss changes then. A connection error is no refusal.
fn is_refusal(error: &watcher::Error) -> bool {
    matches!(watch_status(error), Some(401 | 403 | 404))
}

fn read_policy(guard: DeserializeGuard<ConfiguratorPolicy>) -> (String, ParsedPolicy) {
    let name = guard.name_any();
    let policy = match guard.0 {
        Ok(policy) => policy,
        Err(error) => return (name, ParsedPolicy::Unknown(error.error)),
    };
    let read = match selector(&policy.spec.namespace_selector) {
        Ok(selector) => {
            let checked = Policy::check(&name, &policy.spec).map(Arc::new);
            ParsedPolicy::Known(selector, checked.map_err(|error| error.to_string()))
        }
        Err(error) => ParsedPolicy::Unknown(error.to_string()),
    };
    if let ParsedPolicy::Known(_, Err(why)) | ParsedPolicy::Unknown(why) = &read {
        tracing::warn!(policy = name, "the ConfiguratorPolicy is invalid: {why}");
    }
    (name, read)
}

struct PolicyGuard {
    sink: Arc<dyn Sink>,
    policies: Policies,
}

#[async_trait]
impl Sink for PolicyGuard {
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
