//! Requests that would write members of a set.

use std::collections::HashMap;

use super::{Content, DesiredEntry, DesiredSet};
use crate::graph::member::MemberKey;
use crate::graph::object;
use crate::layers;
use crate::request::{ConfigOperation, ConfigRequest, KubernetesRequest, Operation, Request};

/// The surroundings that complete what entries and requests name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Surroundings<'a> {
    /// The namespace of the owner; empty if it has none.
    pub namespace: &'a str,
    /// The namespace whose partition of the stores is meant where none is named; empty for that of cluster-scoped Configurators.
    pub partition: &'a str,
}

/// Refuses requests that write a member of the set which the same output returns: each would undo the other's changes. Writes of a subresource, as of
/// `status`, are allowed. A request for another version of the member's kind is one for the member.
///
/// # Errors
/// The first entry whose member a request writes, with the names of both.
pub fn check_writes(
    set: &DesiredSet,
    requests: &[Request],
    surroundings: Surroundings<'_>,
) -> Result<(), String> {
    let written: HashMap<MemberKey, &str> = requests
        .iter()
        .flat_map(|request| {
            let keys = written_by(&request.operation, surroundings);
            keys.into_iter().map(|key| (key, request.name.as_str()))
        })
        .collect();
    if written.is_empty() {
        return Ok(());
    }
    for entry in &set.entries {
        for member in members_of(entry, surroundings) {
            if let Some(request) = written.get(&member) {
                return Err(format!(
                    "request {request:?} writes {member}, the member of the entry {:?} of the set: leave it to the set, or take the entry out",
                    entry.name
                ));
            }
        }
    }
    Ok(())
}

/// The members that an entry may have. Whether a kind has namespaces is not known here, so an object that names none has two. None: the entry is not
/// valid, which its own check says.
fn members_of(entry: &DesiredEntry, surroundings: Surroundings<'_>) -> Vec<MemberKey> {
    let Surroundings {
        namespace,
        partition,
    } = surroundings;
    let partition = |named: &Option<String>| named.as_deref().unwrap_or(partition).to_owned();
    match &entry.content {
        Content::Kubernetes(document) => {
            let Ok(described) = object::describe(&document.to_value()) else {
                return Vec::new();
            };
            let in_namespace = match &described.key {
                MemberKey::Kubernetes {
                    group,
                    kind,
                    namespace: named,
                    name,
                } if named.is_empty() && !namespace.is_empty() => Some(MemberKey::Kubernetes {
                    group: group.clone(),
                    kind: kind.clone(),
                    namespace: namespace.to_owned(),
                    name: name.clone(),
                }),
                _ => None,
            };
            in_namespace.into_iter().chain([described.key]).collect()
        }
        Content::Config(config) => config_key(&config.write, namespace)
            .map(|key| MemberKey::Config {
                partition: partition(&config.partition),
                key,
            })
            .into_iter()
            .collect(),
        Content::Secret(secret) => vec![MemberKey::Secret {
            partition: partition(&secret.partition),
            name: secret.name.clone(),
        }],
    }
}

/// What an operation writes that could be a member.
fn written_by(operation: &Operation, surroundings: Surroundings<'_>) -> Vec<MemberKey> {
    if !operation.is_mutating() {
        return Vec::new();
    }
    let partition = || {
        let named = operation.partition();
        named.unwrap_or(surroundings.partition).to_owned()
    };
    match operation {
        Operation::Kubernetes(KubernetesRequest {
            subresource: Some(_),
            ..
        }) => Vec::new(),
        Operation::Kubernetes(request) => vec![MemberKey::Kubernetes {
            group: request.group.clone(),
            kind: request.kind.clone(),
            namespace: request.namespace.clone(),
            name: request.name.clone(),
        }],
        Operation::Config(ConfigRequest { operations, .. }) => operations
            .iter()
            .filter(|operation| operation.is_mutating())
            .filter_map(|operation| config_key(operation, surroundings.namespace))
            .map(|key| MemberKey::Config {
                partition: partition(),
                key,
            })
            .collect(),
        Operation::Secret(request) => vec![MemberKey::Secret {
            partition: partition(),
            name: request.name.clone(),
        }],
        Operation::Http(_) | Operation::Extension(_) => Vec::new(),
    }
}

/// The key of an operation on the config store. `None`: it is not valid, which its own check says.
fn config_key(operation: &ConfigOperation, namespace: &str) -> Option<String> {
    layers::key_of(operation, namespace).ok()
}

#[cfg(test)]
mod tests;
