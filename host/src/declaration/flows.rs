//! The flows that are resources of their own.

use std::collections::BTreeMap;

use configurator_core::request::ObjectRef;

use crate::resource::flow::Flow;
use crate::resource::machine::FlowSpec;

/// Flows by the names that Configurators use.
pub type Flows = BTreeMap<String, FlowSpec>;

/// The Flows and ClusterFlows of a cluster.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FlowSet {
    flows: BTreeMap<ObjectRef, (String, FlowSpec)>,
    /// How often the flows of each namespace have changed; without a namespace, the ClusterFlows.
    changes: BTreeMap<String, u64>,
}

impl FlowSet {
    /// Adds a Flow, or replaces it.
    pub fn insert(&mut self, flow: Flow) {
        let (key, named) = (flow.key(), flow.named());
        if self.flows.get(&key) != Some(&named) {
            self.change(&key);
            self.flows.insert(key, named);
        }
    }

    /// Removes a Flow.
    pub fn remove(&mut self, key: &ObjectRef) {
        if self.flows.remove(key).is_some() {
            self.change(key);
        }
    }

    /// Keeps the Flows of which this is true.
    pub fn retain(&mut self, is_kept: impl Fn(&ObjectRef) -> bool) {
        let gone = self.flows.keys().filter(|key| !is_kept(key));
        for key in gone.cloned().collect::<Vec<_>>() {
            self.remove(&key);
        }
    }

    fn change(&mut self, key: &ObjectRef) {
        let changes = self.changes.entry(key.namespace.clone()).or_default();
        *changes = changes.saturating_add(1);
    }

    /// How often the flows that Configurators of this namespace can use have changed.
    #[must_use]
    pub fn changes(&self, namespace: &str) -> u64 {
        let of = |namespace: &str| self.changes.get(namespace).copied().unwrap_or_default();
        match namespace {
            "" => of(""),
            _ => of("").saturating_add(of(namespace)),
        }
    }

    /// The flows that Configurators of this namespace can use: those of the namespace, and those of the cluster with other names. For
    /// ClusterConfigurators the namespace is empty.
    #[must_use]
    pub fn of_namespace(&self, namespace: &str) -> Flows {
        // Those without a namespace come first.
        let all = self.flows.iter();
        let usable = all.filter(|(key, _)| key.namespace.is_empty() || key.namespace == namespace);
        usable.map(|(_, flow)| flow.clone()).collect()
    }
}

impl FromIterator<Flow> for FlowSet {
    fn from_iter<I: IntoIterator<Item = Flow>>(all: I) -> Self {
        let mut flows = Self::default();
        for flow in all {
            flows.insert(flow);
        }
        flows
    }
}
