//! What should be sent, by a model that is written for being read.

use configurator_core::capability::{Capabilities, KubernetesRule};
use configurator_core::request::{KubernetesRequest, KubernetesVerb, PatchType, PropagationPolicy};
use serde_json::{Map, Value, json};

use super::generate::{BodyFacts, Case};

/// The field manager of the requests.
pub const FIELD_MANAGER: &str = "ccfgr/demo";
/// Subresources that the server has, of each of its resources.
pub const SERVED: [&str; 2] = ["status", "scale"];

/// What should reach the server.
#[derive(Debug)]
pub struct Expected {
    /// The method of the request itself.
    pub method: &'static str,
    /// Its path, decoded.
    pub path: String,
    /// Its query, decoded.
    pub query: Vec<(String, String)>,
    /// Its body; `None` where a name is generated, and checked apart.
    pub body: Value,
    /// Whether the handler may see the content of the object.
    pub may_read: bool,
    /// Whether the object is read before.
    pub reads_before: bool,
    /// Whether the request itself is sent after that.
    pub is_sent: bool,
    /// Whether the name is made of a prefix.
    pub is_generated: bool,
}

/// What should be sent of a case that all of these rules must allow; `None` where nothing should.
pub fn expected(case: &Case, rules: &[Capabilities]) -> Option<Expected> {
    let request = &case.request;
    let is_generated = request.name.is_empty()
        && request.verb == KubernetesVerb::Create
        && request.subresource.is_none()
        && case
            .body
            .generate_name
            .as_deref()
            .is_some_and(|prefix| !prefix.is_empty());
    if !is_well_formed(request, is_generated) || !agrees(request, &case.body, is_generated) {
        return None;
    }
    let allows = |verb: KubernetesVerb| {
        rules.iter().all(|rules| {
            rules
                .kubernetes
                .iter()
                .any(|rule| permits(rule, request, verb, is_generated))
        })
    };
    if !allows(request.verb) {
        return None;
    }
    let is_read = matches!(request.verb, KubernetesVerb::Get | KubernetesVerb::List);
    let may_get = allows(KubernetesVerb::Get);
    let precondition = request.precondition.as_ref();
    let is_pinned = request.verb == KubernetesVerb::Apply
        && request.subresource.is_none()
        && precondition.is_some_and(|it| it.resource_version.is_some() && it.uid.is_none());
    if is_pinned && !may_get {
        return None;
    }
    let is_prechecked = request.verb == KubernetesVerb::Create
        && request.subresource.is_none()
        && request.precheck_exist
        && may_get;
    Some(Expected {
        method: method(request.verb),
        path: path(request),
        query: query(request),
        body: body(case, is_pinned),
        may_read: is_read || may_get,
        reads_before: is_pinned || is_prechecked,
        is_sent: match (is_pinned, is_prechecked) {
            (true, _) => case.exists,
            (_, true) => !case.exists,
            (false, false) => true,
        },
        is_generated,
    })
}

fn is_plain(text: &str) -> bool {
    text != "."
        && text != ".."
        && !text.is_empty()
        && text
            .chars()
            .all(|it| it.is_ascii_alphanumeric() || "-_.".contains(it))
}

fn is_well_formed(request: &KubernetesRequest, is_generated: bool) -> bool {
    let namespace = request.namespace.as_str();
    let is_label = namespace
        .chars()
        .all(|it| "abcdefghijklmnopqrstuvwxyz0123456789-".contains(it))
        && !namespace.starts_with('-')
        && !namespace.ends_with('-');
    let name = request.name.as_str();
    let is_name = name != "."
        && name != ".."
        && !name
            .chars()
            .any(|it| "/%?#".contains(it) || it.is_control());
    let is_special = ["watch", "proxy"].contains(&request.plural.as_str());
    let is_namespace_in_namespace =
        request.group.is_empty() && request.plural == "namespaces" && !namespace.is_empty();
    let subresource = request.subresource.as_deref();
    let is_resource_of_namespace = request.plural == "namespaces"
        && namespace.is_empty()
        && subresource.is_some_and(|it| it != "status" && it != "finalize");
    let has_subresource = subresource.is_none_or(|it| {
        is_plain(it) && SERVED.contains(&it) && request.verb != KubernetesVerb::List
    });
    let is_named = match request.verb {
        KubernetesVerb::List => name.is_empty(),
        _ => !name.is_empty() || is_generated,
    };
    let may_have_precondition = !matches!(
        request.verb,
        KubernetesVerb::Get | KubernetesVerb::List | KubernetesVerb::Create
    );
    (request.group.is_empty() || is_plain(&request.group))
        && is_plain(&request.version)
        && is_plain(&request.plural)
        && is_label
        && is_name
        && is_named
        && !is_special
        && !is_namespace_in_namespace
        && !is_resource_of_namespace
        && has_subresource
        && (request.precondition.is_none() || may_have_precondition)
}

fn agrees(request: &KubernetesRequest, body: &BodyFacts, is_generated: bool) -> bool {
    let api_version = match request.group.as_str() {
        "" => request.version.clone(),
        group => format!("{group}/{}", request.version),
    };
    let is_object = request.subresource.is_none();
    match request.verb {
        KubernetesVerb::Get | KubernetesVerb::List | KubernetesVerb::Delete => true,
        KubernetesVerb::Patch if request.patch_type == PatchType::Json => !body.touches_identity,
        KubernetesVerb::Patch => {
            let same = |said: &Option<String>, own: &str| {
                said.as_deref()
                    .is_none_or(|said| said == own && !own.is_empty())
            };
            !body.is_ambiguous
                && (!is_object || same(&body.api_version, &api_version))
                && (!is_object || same(&body.kind, &request.kind))
                && same(&body.name, &request.name)
                && same(&body.namespace, &request.namespace)
                && body.generate_name.is_none()
        }
        KubernetesVerb::Create | KubernetesVerb::Replace | KubernetesVerb::Apply => {
            let fits = |said: &Option<String>, own: &str| {
                said.as_deref()
                    .is_none_or(|said| said == own || said.is_empty())
            };
            !body.is_ambiguous
                && (!is_object || fits(&body.api_version, &api_version))
                && (!is_object || request.kind.is_empty() || fits(&body.kind, &request.kind))
                && (is_generated || fits(&body.name, &request.name))
                && fits(&body.namespace, &request.namespace)
                && (is_generated
                    || body
                        .generate_name
                        .as_deref()
                        .is_none_or(|prefix| request.name.starts_with(prefix)))
        }
    }
}

fn permits(
    rule: &KubernetesRule,
    request: &KubernetesRequest,
    verb: KubernetesVerb,
    is_generated: bool,
) -> bool {
    let has = |patterns: &[String], text: &str| patterns.iter().any(|it| matches(it, text));
    // No name and no namespace is permitted by `*` alone.
    let names = |patterns: &[String], text: &str| match text {
        "" => patterns
            .iter()
            .any(|it| it.contains('*') && it.replace('*', "").is_empty()),
        text => has(patterns, text),
    };
    let name = if is_generated {
        ""
    } else {
        request.name.as_str()
    };
    // A group of rights is permitted by its name alone. The server has no subresource that is protected.
    let is_named = |name: &str| rule.api_groups.iter().any(|group| group == name);
    let is_of_rights = request.group == "rbac.authorization.k8s.io";
    rule.verbs.contains(&verb)
        && (!is_of_rights || is_named(&request.group))
        && has(&rule.api_groups, &request.group)
        && has(&rule.resources, &request.plural)
        && match &request.subresource {
            None => rule.subresources.is_empty(),
            Some(own) => has(&rule.subresources, own),
        }
        && names(&rule.namespaces, &request.namespace)
        && names(&rule.names, name)
}

/// By trying every place where a star may end.
pub fn matches(pattern: &str, text: &str) -> bool {
    match pattern.chars().next() {
        None => text.is_empty(),
        Some('*') => {
            let rest = &pattern[1..];
            text.char_indices()
                .map(|(at, _)| at)
                .chain([text.len()])
                .any(|at| matches(rest, &text[at..]))
        }
        Some(own) => text
            .strip_prefix(own)
            .is_some_and(|text| matches(&pattern[own.len_utf8()..], text)),
    }
}

const fn method(verb: KubernetesVerb) -> &'static str {
    match verb {
        KubernetesVerb::Get | KubernetesVerb::List => "GET",
        KubernetesVerb::Create => "POST",
        KubernetesVerb::Replace => "PUT",
        KubernetesVerb::Patch | KubernetesVerb::Apply => "PATCH",
        KubernetesVerb::Delete => "DELETE",
    }
}

fn path(request: &KubernetesRequest) -> String {
    let mut segments = match request.group.as_str() {
        "" => vec!["api", &request.version],
        group => vec!["apis", group, &request.version],
    };
    if !request.namespace.is_empty() {
        segments.extend(["namespaces", &request.namespace]);
    }
    segments.push(&request.plural);
    let is_collection = match request.verb {
        KubernetesVerb::List => true,
        KubernetesVerb::Create => request.subresource.is_none(),
        _ => false,
    };
    if !is_collection {
        segments.push(&request.name);
        segments.extend(request.subresource.as_deref());
    }
    format!("/{}", segments.join("/"))
}

fn query(request: &KubernetesRequest) -> Vec<(String, String)> {
    let own = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let mut query = Vec::new();
    match request.verb {
        KubernetesVerb::Get | KubernetesVerb::Delete => {}
        KubernetesVerb::List => {
            query.push(own("limit", "500"));
            query.extend(
                request
                    .label_selector
                    .as_deref()
                    .map(|it| own("labelSelector", it)),
            );
            query.extend(
                request
                    .field_selector
                    .as_deref()
                    .map(|it| own("fieldSelector", it)),
            );
        }
        _ => query.push(own("fieldManager", FIELD_MANAGER)),
    }
    if request.verb == KubernetesVerb::Apply && request.force {
        query.push(own("force", "true"));
    }
    query
}

fn body(case: &Case, is_pinned: bool) -> Value {
    let request = &case.request;
    let precondition = request.precondition.clone().unwrap_or_default();
    let mut held = Map::new();
    let uid = precondition
        .uid
        .or_else(|| is_pinned.then(|| super::server::UID.to_owned()));
    held.extend(uid.map(|it| ("uid".to_owned(), it.into())));
    held.extend(
        precondition
            .resource_version
            .map(|it| ("resourceVersion".to_owned(), it.into())),
    );
    match request.verb {
        KubernetesVerb::Get | KubernetesVerb::List => Value::Null,
        KubernetesVerb::Delete => {
            let policy = match request.propagation_policy {
                PropagationPolicy::Background => "Background",
                PropagationPolicy::Foreground => "Foreground",
                PropagationPolicy::Orphan => "Orphan",
            };
            let mut options =
                json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": policy});
            if request.precondition.is_some() {
                options["preconditions"] = held.into();
            }
            options
        }
        KubernetesVerb::Patch if request.patch_type == PatchType::Json => {
            let tests = ["uid", "resourceVersion"].into_iter().filter_map(|field| {
                let value = held.get(field)?;
                Some(json!({"op": "test", "path": format!("/metadata/{field}"), "value": value}))
            });
            let operations = case.body.value.as_array().unwrap().iter().cloned();
            tests.chain(operations).collect()
        }
        KubernetesVerb::Patch => {
            let mut patch = case.body.value.clone();
            if request.precondition.is_some() {
                let metadata = patch
                    .as_object_mut()
                    .unwrap()
                    .entry("metadata")
                    .or_insert(json!({}));
                metadata.as_object_mut().unwrap().extend(held);
            }
            patch
        }
        KubernetesVerb::Create | KubernetesVerb::Replace | KubernetesVerb::Apply => {
            let mut object = case.body.value.as_object().unwrap().clone();
            if request.subresource.is_none() {
                let api_version = match request.group.as_str() {
                    "" => request.version.clone(),
                    group => format!("{group}/{}", request.version),
                };
                object.insert("apiVersion".into(), api_version.into());
                if !request.kind.is_empty() {
                    object.insert("kind".into(), request.kind.as_str().into());
                }
            }
            let metadata = object.entry("metadata").or_insert(json!({}));
            let metadata = metadata.as_object_mut().unwrap();
            metadata.insert("name".into(), request.name.as_str().into());
            if !request.namespace.is_empty() {
                metadata.insert("namespace".into(), request.namespace.as_str().into());
            }
            metadata.extend(held);
            Value::Object(object)
        }
    }
}
