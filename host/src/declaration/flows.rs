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
}

impl FlowSet {
    /// Adds a Flow, or replaces it.
    pub fn insert(&mut self, flow: Flow) {
        self.flows.insert(flow.key(), flow.named());
    }

    /// Removes a Flow.
    pub fn remove(&mut self, key: &ObjectRef) {
        self.flows.remove(key);
    }

    /// Keeps the Flows of which this is true.
    pub fn retain(&mut self, is_kept: impl Fn(&ObjectRef) -> bool) {
        self.flows.retain(|key, _| is_kept(key));
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
