//! The path of a request. Each part of it is one segment, so that no part can address anything else.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::partition::is_namespace;
use crate::request::{KubernetesRequest, KubernetesVerb};
use crate::text::quoted;

/// What a segment keeps as it is.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
/// The longest segment, in bytes: that of a name in Kubernetes.
const MAX_SEGMENT: usize = 253;
/// What a server reads as a verb where a resource is expected.
const SPECIAL_VERBS: [&str; 2] = ["watch", "proxy"];
/// The subresources of a Namespace. Any other segment after its name is a resource in it.
const NAMESPACE_SUBRESOURCES: [&str; 2] = ["status", "finalize"];

/// Checks each part of the path, and that the parts together address what the request names.
///
/// # Errors
/// What is wrong, naming the field.
pub(crate) fn check(request: &KubernetesRequest) -> Result<(), String> {
    let KubernetesRequest {
        group,
        version,
        plural,
        namespace,
        name,
        subresource,
        verb,
        ..
    } = request;
    let verb = *verb;
    for (field, value) in [("version", version), ("plural", plural)] {
        if value.is_empty() {
            return Err(format!("`{}` needs `{field}`", verb.name()));
        }
    }
    for (field, value) in [("group", group), ("version", version), ("plural", plural)] {
        if !value.is_empty() && !is_segment(value) {
            return Err(refused(field, value));
        }
    }
    if !namespace.is_empty() && !is_namespace(namespace) {
        return Err(refused("namespace", namespace));
    }
    if !name.is_empty() && !is_name(name) {
        return Err(refused("name", name));
    }
    if SPECIAL_VERBS.contains(&plural.as_str()) {
        return Err(format!(
            "`plural` is {plural:?}, which servers read as a verb in a path"
        ));
    }
    let is_core_namespace = group.is_empty() && plural == "namespaces";
    if is_core_namespace && !namespace.is_empty() {
        return Err("a Namespace lies in no namespace: leave `namespace` empty".to_owned());
    }
    if let Some(subresource) = subresource {
        check_subresource(request, subresource)?;
    }
    match (verb, name.is_empty()) {
        (KubernetesVerb::List, false) => {
            Err("`list` takes no `name`; use a field selector".to_owned())
        }
        (KubernetesVerb::List, true) | (_, false) => Ok(()),
        (
            KubernetesVerb::Get
            | KubernetesVerb::Patch
            | KubernetesVerb::Delete
            | KubernetesVerb::Create
            | KubernetesVerb::Replace
            | KubernetesVerb::Apply,
            true,
        ) => Err(format!("`{}` needs `name`", verb.name())),
    }
}

fn check_subresource(request: &KubernetesRequest, subresource: &str) -> Result<(), String> {
    if subresource.is_empty() {
        return Err("`subresource` is empty; leave it out for the object itself".to_owned());
    }
    if !is_segment(subresource) {
        return Err(refused("subresource", subresource));
    }
    if request.verb == KubernetesVerb::List {
        return Err("`list` takes no `subresource`".to_owned());
    }
    let is_collection = request.plural == "namespaces"
        && request.namespace.is_empty()
        && !NAMESPACE_SUBRESOURCES.contains(&subresource);
    if is_collection {
        return Err(format!(
            "a Namespace has no subresource {}: that path addresses a resource in the namespace",
            quoted(subresource)
        ));
    }
    Ok(())
}

fn refused(field: &str, value: &str) -> String {
    format!("`{field}` cannot be part of a path: {}", quoted(value))
}

/// Letters, digits, `-`, `_` and `.`, and neither `.` nor `..`.
fn is_segment(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    text.len() <= MAX_SEGMENT && text != "." && text != ".." && text.bytes().all(is_plain)
}

/// What Kubernetes calls a path segment name: some kinds, as those of RBAC, have names with a colon.
fn is_name(text: &str) -> bool {
    text.len() <= MAX_SEGMENT
        && text != "."
        && text != ".."
        && !text
            .chars()
            .any(|character| matches!(character, '/' | '%' | '?' | '#') || character.is_control())
}

/// The path of the request's group and version.
pub(super) fn root(request: &KubernetesRequest) -> String {
    if request.group.is_empty() {
        format!("/api/{}", request.version)
    } else {
        format!("/apis/{}/{}", request.group, request.version)
    }
}

/// The path of all objects of the request's resource, in its namespace where it names one.
pub(super) fn collection(request: &KubernetesRequest) -> String {
    let root = root(request);
    let namespace = if request.namespace.is_empty() {
        String::new()
    } else {
        format!("/namespaces/{}", request.namespace)
    };
    format!("{root}{namespace}/{}", request.plural)
}

/// The path of the object, or of its subresource.
pub(super) fn object(request: &KubernetesRequest) -> String {
    let subresource = request
        .subresource
        .as_ref()
        .map(|subresource| format!("/{subresource}"))
        .unwrap_or_default();
    format!(
        "{}/{}{subresource}",
        collection(request),
        encoded(&request.name)
    )
}

pub(super) fn append_query(url: &mut String, query: &[(&str, &str)]) {
    for (name, value) in query {
        url.push(if url.contains('?') { '&' } else { '?' });
        url.push_str(name);
        url.push('=');
        url.push_str(&encoded(value));
    }
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, SEGMENT).to_string()
}
