//! What the API has: groups, versions, resources; and the paths that are about the server itself.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, Response, StatusCode};
use serde_json::{Value, json};

use crate::body::ApiBody;
use crate::media;
use crate::object;
use crate::registry::Registry;
use crate::request::ResourcePath;
use crate::resource::Resource;
use crate::server::{Inner, respond};
use crate::status::{Result, Status};

/// The version of Kubernetes whose behaviour this is.
const VERSION: (&str, &str) = ("1", "33");

const VERBS: [&str; 8] = [
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Answers a path that names no resource; none if it may name one.
pub(crate) fn answer(
    server: &Inner,
    method: &Method,
    path: &str,
    headers: &HeaderMap,
) -> Result<Option<Response<ApiBody>>> {
    let path = path.trim_end_matches('/');
    let found = match path {
        "" => Some(json_response(
            &json!({"paths": ["/api", "/api/v1", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"]}),
        )?),
        "/healthz" | "/livez" | "/readyz" => Some(respond(
            StatusCode::OK,
            "text/plain; charset=utf-8",
            Bytes::from_static(b"ok"),
        )),
        "/version" => Some(json_response(&version_info())?),
        "/api" | "/apis" => Some(groups(&server.registry(), path, headers)?),
        _ if path.starts_with("/openapi/") => Some(crate::openapi::answer(server, path)?),
        _ => match path.strip_prefix("/apis/") {
            Some(group) if !group.contains('/') => Some(group_of(&server.registry(), group)?),
            _ => None,
        },
    };
    if found.is_some() && *method != Method::GET && *method != Method::HEAD {
        return Err(Status::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        ));
    }
    Ok(found)
}

fn json_response(value: &Value) -> Result<Response<ApiBody>> {
    Ok(respond(
        StatusCode::OK,
        "application/json",
        crate::output::encode(value)?,
    ))
}

fn version_info() -> Value {
    let (major, minor) = VERSION;
    json!({
        "major": major, "minor": minor, "gitVersion": format!("v{major}.{minor}.0+configurator"), "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "rustc", "platform": "linux/amd64",
    })
}

fn groups(registry: &Registry, path: &str, headers: &HeaderMap) -> Result<Response<ApiBody>> {
    let core = path == "/api";
    let groups = registry
        .groups()
        .into_iter()
        .filter(|(group, _)| group.is_empty() == core);
    if media::accepts_aggregated_discovery(headers) {
        let items: Vec<Value> = groups
            .map(|(group, versions)| aggregated_group(registry, &group, &versions))
            .collect();
        let list = json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items});
        return Ok(respond(
            StatusCode::OK,
            AGGREGATED,
            crate::output::encode(&list)?,
        ));
    }
    if core {
        return json_response(&json!({
            "kind": "APIVersions", "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1"}],
        }));
    }
    let groups: Vec<Value> = groups
        .map(|(group, versions)| group_value(&group, &versions))
        .collect();
    json_response(&json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
}

fn group_of(registry: &Registry, group: &str) -> Result<Response<ApiBody>> {
    let found = registry
        .groups()
        .into_iter()
        .find(|(name, _)| name == group);
    let (group, versions) = found.ok_or_else(Status::page_not_found)?;
    let mut value = group_value(&group, &versions);
    object::set_field(&mut value, "kind", Some(json!("APIGroup")));
    object::set_field(&mut value, "apiVersion", Some(json!("v1")));
    json_response(&value)
}

fn group_value(group: &str, versions: &[String]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .map(|version| json!({"groupVersion": format!("{group}/{version}"), "version": version}))
        .collect();
    json!({"name": group, "versions": versions, "preferredVersion": versions.first()})
}

/// Whether a group answers for its paths decides how they are refused.
pub(crate) fn nothing_at(registry: &Registry, group: &str) -> Status {
    // For custom kinds there is nobody who would know the group without the version.
    if registry
        .all()
        .any(|resource| resource.group == group && resource.custom.is_none())
    {
        Status::no_such_path()
    } else {
        Status::page_not_found()
    }
}

/// The resources of one group and version.
pub(crate) fn version(registry: &Registry, path: &ResourcePath) -> Result<Response<ApiBody>> {
    if !registry.has_version(&path.group, &path.version) {
        return Err(nothing_at(registry, &path.group));
    }
    let mut resources = Vec::new();
    let mut group_version = path.version.clone();
    for resource in registry.of_version(&path.group, &path.version) {
        group_version = resource.api_version();
        resources.push(resource_value(resource));
        for subresource in resource.subresources() {
            let (group, version, kind) = response_kind(resource, subresource);
            let mut value = json!({
                "name": format!("{}/{subresource}", resource.plural), "singularName": "", "namespaced": resource.namespaced, "kind": kind,
                "verbs": subresource_verbs(subresource),
            });
            if (&group, &version) != (&resource.group, &resource.version) {
                object::set_field(&mut value, "group", Some(json!(group)));
                object::set_field(&mut value, "version", Some(json!(version)));
            }
            resources.push(value);
        }
    }
    json_response(
        &json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources}),
    )
}

fn resource_value(resource: &Resource) -> Value {
    let mut value = json!({
        "name": resource.plural, "singularName": resource.singular, "namespaced": resource.namespaced, "kind": resource.kind,
        "verbs": verbs(resource),
    });
    if !resource.short_names.is_empty() {
        object::set_field(&mut value, "shortNames", Some(json!(resource.short_names)));
    }
    if !resource.categories.is_empty() {
        object::set_field(&mut value, "categories", Some(json!(resource.categories)));
    }
    value
}

fn aggregated_group(registry: &Registry, group: &str, versions: &[String]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .map(|version| {
            let resources: Vec<Value> = registry
                .of_version(group, version)
                .into_iter()
                .map(aggregated_resource)
                .collect();
            json!({"version": version, "freshness": "Current", "resources": resources})
        })
        .collect();
    let metadata = if group.is_empty() {
        json!({})
    } else {
        json!({"name": group})
    };
    json!({"metadata": metadata, "versions": versions})
}

fn aggregated_resource(resource: &Arc<Resource>) -> Value {
    let kind = |(group, version, kind): (String, String, String)| json!({"group": group, "version": version, "kind": kind});
    let mut value = json!({
        "resource": resource.plural, "singularResource": resource.singular, "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "responseKind": kind((resource.group.clone(), resource.version.clone(), resource.kind.clone())), "verbs": verbs(resource),
    });
    if !resource.short_names.is_empty() {
        object::set_field(&mut value, "shortNames", Some(json!(resource.short_names)));
    }
    if !resource.categories.is_empty() {
        object::set_field(&mut value, "categories", Some(json!(resource.categories)));
    }
    let subresources: Vec<Value> = resource
        .subresources()
        .into_iter()
        .map(|name| json!({"subresource": name, "responseKind": kind(response_kind(resource, name)), "verbs": subresource_verbs(name)}))
        .collect();
    if !subresources.is_empty() {
        object::set_field(&mut value, "subresources", Some(Value::Array(subresources)));
    }
    value
}

fn response_kind(resource: &Resource, subresource: &str) -> (String, String, String) {
    let of = |group: &str, version: &str, kind: &str| {
        (group.to_owned(), version.to_owned(), kind.to_owned())
    };
    match subresource {
        "scale" => of("autoscaling", "v1", "Scale"),
        "eviction" => of("policy", "v1", "Eviction"),
        "binding" => of("", "v1", "Binding"),
        _ => of(&resource.group, &resource.version, &resource.kind),
    }
}

fn verbs(resource: &Resource) -> &'static [&'static str] {
    if resource.review { &["create"] } else { &VERBS }
}

fn subresource_verbs(subresource: &str) -> &'static [&'static str] {
    match subresource {
        "finalize" => &["update"],
        "binding" | "eviction" => &["create"],
        _ => &["get", "patch", "update"],
    }
}
