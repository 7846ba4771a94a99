//! The check of a desired set, before anything of it is written.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use serde_json::Value;

use super::marks::reserved_in;
use super::{ConfigContent, Content, DesiredEntry, DesiredSet, SecretContent, Termination};
use crate::fault::{Fault, FaultKind};
use crate::field;
use crate::graph::Graph;
use crate::graph::entry::{Entry, Provides};
use crate::graph::member::MemberKey;
use crate::graph::object;
use crate::graph::order::{Node, Order};
use crate::layers;
use crate::output::{MAX_NAME, check_operation};
use crate::partition;
use crate::projection::Projection;
use crate::text::quoted;

/// The object that a set belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner<'a> {
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// The kind.
    pub kind: &'a str,
    /// Empty for a cluster-scoped object.
    pub namespace: &'a str,
    /// The name.
    pub name: &'a str,
}

/// The names that entries and requests leave out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Defaults<'a> {
    /// The namespace of the owner; empty if it has none.
    pub namespace: &'a str,
    /// The namespace whose partition of the stores is meant where none is named; empty for that of cluster-scoped Configurators.
    pub partition: &'a str,
}

/// The surroundings of a set that decide whether it is valid.
#[derive(Clone, Copy)]
#[expect(missing_debug_implementations, reason = "it has a function")]
pub struct SetRules<'a> {
    /// The object that the set belongs to.
    pub owner: Owner<'a>,
    /// The namespace whose partition of the stores is meant where an entry names none; empty for that of cluster-scoped Configurators.
    pub partition: &'a str,
    /// Names of the requests and groups of the same output.
    pub taken: &'a [&'a str],
    /// Tells whether the server has objects of a group and kind in namespaces. `None`: the server does not know the kind.
    pub is_namespaced: &'a dyn Fn(&str, &str) -> Option<bool>,
}

/// A valid set.
#[derive(Debug, Clone)]
pub struct CheckedSet {
    /// The set as the handler returned it.
    pub set: DesiredSet,
    /// The entries, with their members and in order. The index of an entry is the same as in the set.
    pub graph: Graph,
}

/// Kinds whose objects may carry no finalizer of a host, so they cannot own a set.
const NO_OWNERS: [&str; 3] = ["Pod", "Node", "Namespace"];

impl DesiredSet {
    /// Checks the set and orders its entries. The time is linear in entries and dependencies but for a logarithm. Expressions are not compiled, and
    /// rights are not checked.
    ///
    /// # Errors
    /// The first thing that is wrong, with the names of the entries. [`FaultKind::ResourceNotFound`] for an object of a kind that neither the
    /// server nor the set has, which may appear later; [`FaultKind::ResourceGeneric`] for everything else.
    pub fn check(self, rules: SetRules<'_>) -> Result<CheckedSet, Fault> {
        let Owner { group, kind, .. } = rules.owner;
        if group.is_empty() && NO_OWNERS.contains(&kind) {
            return Err(invalid(format!(
                "a {kind} cannot own a set, because it may carry no finalizer of this host"
            )));
        }
        if self.entries.is_empty() && !self.allow_empty {
            return Err(invalid(
                "the set has no entries, which would delete all members; set `allow-empty` if that is meant",
            ));
        }
        self.check_termination()?;
        self.check_names(rules.taken)?;
        self.check_pre_terminate(rules.owner)?;
        let defaults = Defaults {
            namespace: rules.owner.namespace,
            partition: rules.partition,
        };
        let mut described = Vec::with_capacity(self.entries.len());
        for entry in &self.entries {
            let named = |fault: Fault| of_entry(&entry.name, fault);
            described.push(describe(entry, defaults).map_err(named)?);
        }
        self.fill_namespaces(&mut described, rules)?;
        for (entry, described) in self.entries.iter().zip(&described) {
            rules
                .owner
                .check_member(&described.key, described.provides.as_ref())
                .map_err(|fault| of_entry(&entry.name, fault))?;
        }
        let entries = self.entries.iter().zip(described);
        let entries = entries.map(|(entry, described)| Entry {
            name: entry.name.clone(),
            key: described.key,
            depends_on: entry.depends_on.clone(),
            on_existing: entry.on_existing,
            on_immutable: entry.on_immutable,
            on_delete: entry.on_delete,
            timeout: entry.timeout,
            provides: described.provides,
        });
        let orders = self.orders.clone().unwrap_or_default();
        let graph = Graph::new(entries.collect(), &orders);
        let graph = graph.map_err(|error| invalid(error.to_string()))?;
        Ok(CheckedSet { set: self, graph })
    }

    fn check_termination(&self) -> Result<(), Fault> {
        match &self.termination_policy {
            Some(Termination::Path(path)) => check_path("termination-policy", path),
            Some(Termination::Policy(_)) | None => Ok(()),
        }
    }

    /// Entries and requests share one space of names.
    fn check_names(&self, taken: &[&str]) -> Result<(), Fault> {
        let requests = self.pre_terminate.iter().map(|request| &*request.name);
        let mut names: HashSet<&str> = taken.iter().copied().collect();
        let own = self.entries.iter().map(|entry| entry.name.as_str());
        for name in own.chain(requests) {
            if name.is_empty() || name.len() > MAX_NAME {
                return Err(invalid(format!(
                    "the name {} of an entry must have 1 to {MAX_NAME} bytes",
                    quoted(name)
                )));
            }
            if !names.insert(name) {
                return Err(invalid(format!(
                    "two entries or requests are named {name:?}"
                )));
            }
        }
        Ok(())
    }

    fn check_pre_terminate(&self, owner: Owner<'_>) -> Result<(), Fault> {
        for request in &self.pre_terminate {
            check_operation(request, owner.namespace).map_err(|fault| Fault {
                message: format!("request {:?}: {}", request.name, fault.message),
                ..fault
            })?;
            let of_output = request.group_by.is_some() || request.of.is_some();
            let of_leaf = request.once || request.bootstrap_dep;
            if request.is_declarative || of_output || of_leaf {
                return Err(invalid(format!(
                    "the request {:?} of `pre-terminate` must not be declarative, and has no `group-by`, `of`, `once` or `bootstrap-dep`",
                    request.name
                )));
            }
            if request.ready_when.is_some() && !request.operation.answers_object() {
                return Err(invalid(format!(
                    "the request {:?} of `pre-terminate` has `ready-when`, and no object to be ready: it must read or write one Kubernetes object, and not delete it",
                    request.name
                )));
            }
        }
        let nodes = self.pre_terminate.iter().map(|request| Node {
            name: &request.name,
            depends_on: &request.depends_on,
        });
        Order::of(nodes)
            .map(drop)
            .map_err(|error| invalid(format!("`pre-terminate`: {error}")))
    }

    /// Gives objects of namespaced kinds that name no namespace that of the owner.
    fn fill_namespaces(
        &self,
        described: &mut [Described],
        rules: SetRules<'_>,
    ) -> Result<(), Fault> {
        // A set has many objects of few kinds, so the server is asked once for each kind that the set does not define.
        let mut known = defined_kinds(described);
        for (entry, described) in self.entries.iter().zip(described) {
            let MemberKey::Kubernetes {
                group,
                kind,
                namespace,
                ..
            } = &mut described.key
            else {
                continue;
            };
            let at = (group.clone(), kind.clone());
            let is_namespaced = *known
                .entry(at)
                .or_insert_with(|| (rules.is_namespaced)(group, kind));
            let wrong = |fault: Fault| Err(of_entry(&entry.name, fault));
            match (is_namespaced, namespace.is_empty()) {
                (Some(true), true) if rules.owner.namespace.is_empty() => {
                    return wrong(invalid(format!(
                        "{kind} is namespaced, and the owner has no namespace: name `metadata.namespace`"
                    )));
                }
                (Some(true), true) => rules.owner.namespace.clone_into(namespace),
                (Some(false), false) => {
                    return wrong(invalid(format!(
                        "{kind} is cluster-scoped: leave out `metadata.namespace`"
                    )));
                }
                (None, _) => {
                    let message = format!(
                        "neither the server nor the set has the kind {}",
                        kind_of(group, kind)
                    );
                    return wrong(Fault::new(FaultKind::ResourceNotFound, message));
                }
                (Some(true), false) | (Some(false), true) => {}
            }
        }
        Ok(())
    }
}

/// An entry as it was read.
struct Described {
    key: MemberKey,
    provides: Option<Provides>,
    /// Of a CustomResourceDefinition: whether the objects of its kind are in namespaces.
    defines_namespaced: bool,
}

impl Described {
    const fn of_store(key: MemberKey) -> Self {
        Self {
            key,
            provides: None,
            defines_namespaced: false,
        }
    }
}

/// The kinds that CustomResourceDefinitions of a set define, and whether their objects are in namespaces.
fn defined_kinds(described: &[Described]) -> HashMap<(String, String), Option<bool>> {
    let kinds = described.iter().filter_map(|one| match &one.provides {
        Some(Provides::Kind { group, kind }) => {
            Some(((group.clone(), kind.clone()), Some(one.defines_namespaced)))
        }
        _ => None,
    });
    kinds.collect()
}

fn describe(entry: &DesiredEntry, defaults: Defaults<'_>) -> Result<Described, Fault> {
    if entry.timeout == Some(Duration::ZERO) {
        return Err(invalid("a timeout of zero leaves no time to be ready"));
    }
    let is_object = matches!(entry.content, Content::Kubernetes(_));
    if !entry.ignored_paths.is_empty() && !is_object {
        return Err(invalid("`ignored-paths` is for Kubernetes objects only"));
    }
    for path in &entry.ignored_paths {
        check_path("ignored-paths", path)?;
    }
    match &entry.content {
        Content::Kubernetes(document) => describe_object(&document.to_value()),
        Content::Config(config) => config_key(config, defaults).map(Described::of_store),
        Content::Secret(secret) => secret_key(secret, defaults).map(Described::of_store),
    }
}

/// The member that an entry for the config store has.
pub(super) fn config_key(
    config: &ConfigContent,
    defaults: Defaults<'_>,
) -> Result<MemberKey, Fault> {
    let key = layers::key_of(&config.write, defaults.namespace)
        .map_err(|error| invalid(error.to_string()))?;
    let partition = partition_of(config.partition.as_deref(), defaults)?;
    Ok(MemberKey::Config { partition, key })
}

/// The member that an entry for the secret store has.
pub(super) fn secret_key(
    secret: &SecretContent,
    defaults: Defaults<'_>,
) -> Result<MemberKey, Fault> {
    if secret.name.is_empty() {
        return Err(invalid("`secret-name` is empty"));
    }
    Ok(MemberKey::Secret {
        partition: partition_of(secret.partition.as_deref(), defaults)?,
        name: secret.name.clone(),
    })
}

fn describe_object(object: &Value) -> Result<Described, Fault> {
    let described = object::describe(object).map_err(|error| invalid(error.to_string()))?;
    if let Some(name) = reserved_in(object) {
        return Err(invalid(format!(
            "the label or annotation {name:?} is the host's own"
        )));
    }
    let scope = field::at(object, "/spec/scope").and_then(Value::as_str);
    Ok(Described {
        key: described.key,
        provides: described.provides,
        defines_namespaced: scope == Some("Namespaced"),
    })
}

/// The namespace whose partition an entry means.
fn partition_of(named: Option<&str>, defaults: Defaults<'_>) -> Result<String, Fault> {
    if let Some(namespace) = named {
        partition::check_name(namespace).map_err(invalid)?;
    }
    Ok(named.unwrap_or(defaults.partition).to_owned())
}

fn check_path(field: &str, path: &str) -> Result<(), Fault> {
    Projection::parse(&[path])
        .map(drop)
        .map_err(|error| invalid(format!("`{field}`: {error}")))
}

impl Owner<'_> {
    /// Refuses a member without which the owner could not exist: its deletion would delete the owner, and the owner's would wait for it.
    fn check_member(&self, key: &MemberKey, provides: Option<&Provides>) -> Result<(), Fault> {
        let MemberKey::Kubernetes {
            group,
            kind,
            namespace,
            name,
        } = key
        else {
            return Ok(());
        };
        let is_owner = (&**group, &**kind, &**namespace, &**name)
            == (self.group, self.kind, self.namespace, self.name);
        if is_owner {
            return Err(invalid("the set contains its own owner"));
        }
        if *kind == "ObjectSet" && *group == "configurator.dev" {
            return Err(invalid("ObjectSets are the host's own"));
        }
        match provides {
            Some(Provides::Namespace(namespace)) if namespace == self.namespace => {
                Err(invalid("the set contains the Namespace of its owner"))
            }
            Some(Provides::Kind { group, kind }) if group == self.group && kind == self.kind => {
                Err(invalid(
                    "the set contains the CustomResourceDefinition of its owner's kind",
                ))
            }
            _ => Ok(()),
        }
    }
}

fn kind_of(group: &str, kind: &str) -> String {
    match group {
        "" => kind.to_owned(),
        group => format!("{kind}.{group}"),
    }
}

fn of_entry(name: &str, fault: Fault) -> Fault {
    Fault {
        message: format!("entry {name:?}: {}", fault.message),
        ..fault
    }
}

fn invalid(message: impl Into<String>) -> Fault {
    Fault::new(FaultKind::ResourceGeneric, message)
}

#[cfg(test)]
mod tests;
