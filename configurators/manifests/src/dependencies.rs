//! Dependencies that can be read from the objects.
//!
//! | object | comes after |
//! |---|---|
//! | a workload | the ServiceAccount, ConfigMaps and Secrets that its Pods use |
//! | a workload | the Services that its environment variables have addresses of, and the workloads behind them |
//! | a binding of a role | the role |
//! | an APIService, the configuration of webhooks | its Services, and the workloads behind them |
//!
//! Objects that the manifests lack are assumed to exist. The host itself puts definitions of kinds and Namespaces first. A workload does not wait for a
//! PersistentVolumeClaim, because some are bound only when a Pod uses them.

mod address;
mod pod_spec;
mod workload;

use std::collections::{BTreeSet, HashMap};

use configurator_sdk::HandlerError;
use serde_json::Value;

use self::address::{Address, variables};
use self::workload::Workload;
use crate::application::Addresses;
use crate::object::Object;

/// The dependencies between objects, by index.
#[derive(Debug, Default)]
pub struct Dependencies {
    needed: HashMap<usize, BTreeSet<usize>>,
}

impl Dependencies {
    /// Reads the dependencies among the objects.
    ///
    /// # Errors
    /// Fatal, if an address names a host that is neither among the objects nor external.
    pub fn of(objects: &[Object], addresses: Option<&Addresses>) -> Result<Self, HandlerError> {
        let index = Index::of(objects);
        let mut dependencies = Self::default();
        for (from, object) in objects.iter().enumerate() {
            dependencies.add(from, index.uses(object));
            dependencies.add(from, index.calls(object));
            if let Some(addresses) = addresses {
                let called = index.called_by(object, addresses)?;
                dependencies.add(from, called);
            }
        }
        Ok(dependencies)
    }

    /// Makes an object depend on others. A dependency on itself is ignored.
    pub fn add(&mut self, from: usize, needed: impl IntoIterator<Item = usize>) {
        let needed = needed.into_iter().filter(|needed| *needed != from);
        self.needed.entry(from).or_default().extend(needed);
    }

    /// Returns the objects that must be ready before this one.
    pub fn of_object(&self, from: usize) -> BTreeSet<usize> {
        self.needed.get(&from).cloned().unwrap_or_default()
    }
}

/// The objects by name, and the workloads by namespace.
struct Index<'a> {
    /// By kind, namespace and name. The kinds that are looked up exist in one group only.
    by_name: HashMap<(&'a str, &'a str, &'a str), usize>,
    /// By namespace.
    workloads: HashMap<&'a str, Vec<(usize, Workload<'a>)>>,
    objects: &'a [Object],
}

impl<'a> Index<'a> {
    fn of(objects: &'a [Object]) -> Self {
        let mut workloads: HashMap<&str, Vec<_>> = HashMap::new();
        let mut by_name = HashMap::new();
        for (index, object) in objects.iter().enumerate() {
            by_name.insert((&*object.kind, namespace_of(object), &*object.name), index);
            if let Some(workload) = Workload::of(object) {
                let here = workloads.entry(&*object.namespace).or_default();
                here.push((index, workload));
            }
        }
        Self {
            by_name,
            workloads,
            objects,
        }
    }

    fn find(&self, kind: &str, namespace: &str, name: &str) -> Option<usize> {
        self.by_name.get(&(kind, namespace, name)).copied()
    }

    /// Returns the objects that an object refers to by name.
    fn uses(&self, object: &Object) -> Vec<usize> {
        let mut found = Vec::new();
        if let Some(workload) = Workload::of(object) {
            for (kind, name) in pod_spec::references(workload.pod_spec) {
                found.extend(self.find(kind, &object.namespace, name));
            }
        }
        if matches!(&*object.kind, "RoleBinding" | "ClusterRoleBinding") {
            let text = |pointer| object.content.pointer(pointer).and_then(Value::as_str);
            if let (Some(kind), Some(name)) = (text("/roleRef/kind"), text("/roleRef/name")) {
                let namespace = match kind {
                    "Role" => &*object.namespace,
                    _ => "",
                };
                found.extend(self.find(kind, namespace, name));
            }
        }
        found
    }

    /// Returns the Services that the API server calls for an object, and the workloads behind them.
    fn calls(&self, object: &Object) -> BTreeSet<usize> {
        let content = &object.content;
        let services: Vec<&Value> = match &*object.kind {
            "APIService" => content.pointer("/spec/service").into_iter().collect(),
            "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => {
                let webhooks = content.get("webhooks").and_then(Value::as_array);
                let webhooks = webhooks.into_iter().flatten();
                webhooks
                    .filter_map(|webhook| webhook.pointer("/clientConfig/service"))
                    .collect()
            }
            _ => Vec::new(),
        };
        let mut found = BTreeSet::new();
        for service in services {
            let text = |field: &str| service.get(field).and_then(Value::as_str);
            if let (Some(namespace), Some(name)) = (text("namespace"), text("name"))
                && let Some(service) = self.find("Service", namespace, name)
            {
                found.extend(self.behind(service));
            }
        }
        found
    }

    /// Returns the Services that a workload has addresses of, and the workloads behind them.
    fn called_by(
        &self,
        object: &Object,
        addresses: &Addresses,
    ) -> Result<BTreeSet<usize>, HandlerError> {
        let mut found = BTreeSet::new();
        let Some(workload) = Workload::of(object) else {
            return Ok(found);
        };
        for (variable, value) in variables(workload.pod_spec, &addresses.variables) {
            let Some(address) = Address::parse(value, &object.namespace) else {
                continue;
            };
            let service = self.find("Service", address.namespace, address.name);
            if let Some(service) = service {
                found.extend(self.behind(service));
            } else if address.is_in_cluster && !addresses.external.iter().any(|e| e == address.host)
            {
                return Err(HandlerError::fatal(format!(
                    "{}: {variable} has the address of the Service {}/{}, which the manifests lack; add it, or list {:?} in `addresses.external`",
                    object.entry_name(),
                    address.namespace,
                    address.name,
                    address.host
                )));
            }
        }
        Ok(found)
    }

    /// Returns a Service and the workloads that it selects. A Service of the type LoadBalancer is left out, because it may become ready late.
    fn behind(&self, service: usize) -> Vec<usize> {
        let Some(object) = self.objects.get(service) else {
            return Vec::new();
        };
        let selector = object.content.pointer("/spec/selector");
        let selector = selector.and_then(Value::as_object);
        let workloads = self.workloads.get(&*object.namespace);
        let workloads = workloads.into_iter().flatten();
        let mut found: Vec<usize> = workloads
            .filter(|(_, workload)| selector.is_some_and(|selector| workload.has(selector)))
            .map(|(index, _)| *index)
            .collect();
        let kind = object.content.pointer("/spec/type");
        if kind.and_then(Value::as_str) != Some("LoadBalancer") {
            found.push(service);
        }
        found
    }
}

/// The namespace; empty for the kinds here that have none.
fn namespace_of(object: &Object) -> &str {
    match &*object.kind {
        "ClusterRole" => "",
        _ => &object.namespace,
    }
}
