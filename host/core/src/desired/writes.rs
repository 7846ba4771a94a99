//! Requests that would write members of a set.

use std::collections::HashMap;

use serde_json::Value;

use super::check::{self, Defaults};
use super::{Content, DesiredEntry, DesiredSet};
use crate::graph::member::MemberKey;
use crate::graph::object;
use crate::layers;
use crate::request::{ConfigRequest, KubernetesRequest, Operation, Request};

/// Refuses requests that write a member of the set which the same output returns: each would undo the other's changes. Writes of a subresource, as of
/// `status`, are allowed. A request for another version of the member's kind is one for the member.
///
/// # Errors
/// The first entry whose member a request writes, with the names of both.
pub fn check_writes(
    set: &DesiredSet,
    requests: &[Request],
    defaults: Defaults<'_>,
) -> Result<(), String> {
    let written: HashMap<MemberKey, &str> = requests
        .iter()
        .flat_map(|request| {
            let keys = written_by(&request.operation, defaults);
            keys.into_iter().map(|key| (key, request.name.as_str()))
        })
        .collect();
    if written.is_empty() {
        return Ok(());
    }
    for entry in &set.entries {
        for member in members_of(entry, defaults) {
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

/// The members that an entry may have: two for an object without a namespace, because it is not known here whether its kind has namespaces. None: the
/// entry is not valid, which its own check says.
fn members_of(entry: &DesiredEntry, defaults: Defaults<'_>) -> Vec<MemberKey> {
    let in_store = match &entry.content {
        Content::Kubernetes(document) => return objects_of(&document.to_value(), defaults),
        Content::Config(config) => check::config_key(config, defaults),
        Content::Secret(secret) => check::secret_key(secret, defaults),
    };
    in_store.into_iter().collect()
}

fn objects_of(object: &Value, defaults: Defaults<'_>) -> Vec<MemberKey> {
    let Ok(described) = object::describe(object) else {
        return Vec::new();
    };
    let mut with_namespace = described.key.clone();
    if let MemberKey::Kubernetes { namespace, .. } = &mut with_namespace
        && namespace.is_empty()
    {
        defaults.namespace.clone_into(namespace);
    }
    vec![described.key, with_namespace]
}

/// What an operation writes that could be a member.
fn written_by(operation: &Operation, defaults: Defaults<'_>) -> Vec<MemberKey> {
    if !operation.is_mutating() {
        return Vec::new();
    }
    let partition = || {
        let named = operation.partition();
        named.unwrap_or(defaults.partition).to_owned()
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
            .filter_map(|operation| layers::key_of(operation, defaults.namespace).ok())
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

#[cfg(test)]
mod tests;
