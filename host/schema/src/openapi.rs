//! OpenAPI documents, as `kubectl explain` and `kubectl apply` read them.
//!
//! Documents are made at each call from the generated types and the schemas of custom resources, and are large: keep their
//! bytes (or their digest), not the values.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ListMeta, ObjectMeta, Status};
use serde_json::{Map, Value, json};

use crate::builtin::{annotate, kinds};

const V3: &str = "#/components/schemas/";
const V2: &str = "#/definitions/";
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";

/// One resource to describe.
#[derive(Clone, Copy, Debug)]
pub struct Resource<'a> {
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// The version, as `v1`.
    pub version: &'a str,
    /// The kind, as `Pod`.
    pub kind: &'a str,
    /// The plural resource name, as `pods`.
    pub plural: &'a str,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// The subresources, as `status` and `scale`.
    pub subresources: &'a [&'a str],
    /// The `openAPIV3Schema` of a custom resource; none for a built-in kind.
    pub crd_schema: Option<&'a Value>,
}

impl Resource<'_> {
    fn gvk(&self) -> Value {
        json!({"group": self.group, "version": self.version, "kind": self.kind})
    }

    /// The name of its definition: `io.k8s.api.core.v1.Pod`, or of a custom kind `com.example.v1.Widget`.
    fn definition(&self) -> String {
        match kinds::find(self.group, self.version, self.kind) {
            Some((_, known)) if self.crd_schema.is_none() => known.definition.to_owned(),
            _ => {
                let reversed: Vec<&str> = self.group.rsplit('.').collect();
                format!("{}.{}.{}", reversed.join("."), self.version, self.kind)
            }
        }
    }

    fn prefix(&self) -> String {
        if self.group.is_empty() {
            format!("/api/{}", self.version)
        } else {
            format!("/apis/{}/{}", self.group, self.version)
        }
    }
}

/// The OpenAPI v3 document of one group and version.
pub fn v3(resources: &[Resource<'_>]) -> Value {
    let mut schemas = definitions(resources);
    for schema in schemas.values_mut() {
        wrap_references(schema);
    }
    schemas.insert(
        "io.k8s.apimachinery.pkg.api.resource.Quantity".to_owned(),
        json!({"description": "A fixed-point number, as 500m or 1Gi.", "oneOf": [{"type": "string"}, {"type": "number"}]}),
    );
    schemas.insert(
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString".to_owned(),
        json!({"description": "An integer or a string.", "format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]}),
    );
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.37.0"},
        "paths": paths(resources, Dialect::V3),
        "components": {"schemas": schemas},
    })
}

/// The OpenAPI v2 document of all resources.
pub fn v2(resources: &[Resource<'_>]) -> Value {
    let mut schemas = definitions(resources);
    schemas.insert(
        "io.k8s.apimachinery.pkg.api.resource.Quantity".to_owned(),
        json!({"description": "A fixed-point number, as 500m or 1Gi.", "type": "string"}),
    );
    schemas.insert(
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString".to_owned(),
        json!({"description": "An integer or a string.", "type": "string", "format": "int-or-string"}),
    );
    let mut document = json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": "v1.37.0"},
        "paths": paths(resources, Dialect::V2),
        "definitions": schemas,
    });
    rename_references(&mut document);
    document
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Dialect {
    V2,
    V3,
}

/// Media types of patches; the last is for built-in kinds only.
const PATCHES: [&str; 4] = [
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
];

fn definitions(resources: &[Resource<'_>]) -> Map<String, Value> {
    let mut generator = kinds::generator();
    generator.subschema_for::<ObjectMeta>();
    generator.subschema_for::<ListMeta>();
    generator.subschema_for::<Status>();
    for resource in resources.iter().filter(|r| r.crd_schema.is_none()) {
        if let Some((_, known)) = kinds::find(resource.group, resource.version, resource.kind) {
            known.add_to(&mut generator);
        }
    }
    let mut schemas = generator.take_definitions(false);
    annotate(&mut schemas);
    for resource in resources {
        let name = resource.definition();
        if let Some(schema) = resource.crd_schema {
            schemas.insert(name.clone(), custom(schema));
        }
        if let Some(Value::Object(schema)) = schemas.get_mut(&name) {
            schema.insert(
                "x-kubernetes-group-version-kind".to_owned(),
                json!([resource.gvk()]),
            );
        }
        schemas.insert(format!("{name}List"), list(resource, &name));
    }
    schemas
}

/// The schema of a custom resource, with what every object has.
fn custom(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Value::Object(map) = &mut schema {
        let properties = map.entry("properties").or_insert_with(|| json!({}));
        if let Value::Object(properties) = properties {
            for (name, description) in HEADERS {
                properties.insert(
                    name.to_owned(),
                    json!({"type": "string", "description": description}),
                );
            }
            properties.insert(
                "metadata".to_owned(),
                json!({"$ref": format!("{V3}{META}ObjectMeta"), "description": "Standard object's metadata."}),
            );
        }
    }
    schema
}

const HEADERS: [(&str, &str); 2] = [
    (
        "apiVersion",
        "APIVersion defines the versioned schema of this representation of an object.",
    ),
    (
        "kind",
        "Kind is a string value representing the REST resource this object represents.",
    ),
];

fn list(resource: &Resource<'_>, definition: &str) -> Value {
    let mut gvk = resource.gvk();
    if let Some(kind) = gvk.get_mut("kind") {
        *kind = json!(format!("{}List", resource.kind));
    }
    json!({
        "description": format!("{0}List is a list of {0}.", resource.kind),
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"$ref": format!("{V3}{META}ListMeta")},
            "items": {"type": "array", "items": {"$ref": format!("{V3}{definition}")}},
        },
        "x-kubernetes-group-version-kind": [gvk],
    })
}

fn paths(resources: &[Resource<'_>], dialect: Dialect) -> Value {
    let mut paths = Map::new();
    for resource in resources {
        let prefix = resource.prefix();
        let collection = if resource.namespaced {
            let all = operations(resource, dialect, &[("get", "list")], true);
            paths.insert(format!("{prefix}/{}", resource.plural), all);
            format!("{prefix}/namespaces/{{namespace}}/{}", resource.plural)
        } else {
            format!("{prefix}/{}", resource.plural)
        };
        let many = [
            ("get", "list"),
            ("post", "post"),
            ("delete", "deletecollection"),
        ];
        let one = [
            ("get", "get"),
            ("put", "put"),
            ("patch", "patch"),
            ("delete", "delete"),
        ];
        paths.insert(
            collection.clone(),
            operations(resource, dialect, &many, true),
        );
        paths.insert(
            format!("{collection}/{{name}}"),
            operations(resource, dialect, &one, false),
        );
        for subresource in resource.subresources {
            let verbs = [("get", "get"), ("put", "put"), ("patch", "patch")];
            let mut item = operations(resource, dialect, &verbs, false);
            if *subresource == "scale" {
                set_kind(
                    &mut item,
                    &json!({"group": "autoscaling", "version": "v1", "kind": "Scale"}),
                );
            }
            paths.insert(format!("{collection}/{{name}}/{subresource}"), item);
        }
    }
    Value::Object(paths)
}

fn operations(
    resource: &Resource<'_>,
    dialect: Dialect,
    verbs: &[(&str, &str)],
    collection: bool,
) -> Value {
    let definition = resource.definition();
    let mut item = Map::new();
    for (verb, action) in verbs {
        let answer = match *action {
            "list" => format!("{definition}List"),
            "delete" | "deletecollection" => format!("{META}Status"),
            _ => definition.clone(),
        };
        let body = matches!(*verb, "post" | "put" | "patch");
        let mut parameters: Vec<Value> = query(action)
            .iter()
            .map(|name| parameter(name, dialect))
            .collect();
        let reference = json!({"$ref": format!("{V3}{definition}")});
        let id = format!(
            "{action}{}{}",
            resource.kind,
            if collection { "Collection" } else { "" }
        );
        let mut operation = json!({
            "operationId": id,
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": resource.gvk(),
        });
        let schema = json!({"$ref": format!("{V3}{answer}")});
        let types: &[&str] = if *verb == "patch" {
            // Custom kinds know no strategic merge, and clients choose from what is offered.
            let is_custom = resource.crd_schema.is_some();
            if is_custom { &PATCHES[..3] } else { &PATCHES }
        } else {
            &["application/json", "application/yaml"]
        };
        let patch = json!({"type": "object"});
        let sent = if *verb == "patch" { &patch } else { &reference };
        let response = match dialect {
            Dialect::V3 => {
                if body {
                    let content: Map<String, Value> = types
                        .iter()
                        .map(|t| ((*t).to_owned(), json!({"schema": sent})))
                        .collect();
                    set(
                        &mut operation,
                        "requestBody",
                        json!({"required": true, "content": content}),
                    );
                }
                json!({"description": "OK", "content": {"application/json": {"schema": schema}}})
            }
            Dialect::V2 => {
                if body {
                    parameters.push(
                        json!({"in": "body", "name": "body", "required": true, "schema": sent}),
                    );
                    set(&mut operation, "consumes", json!(types));
                }
                json!({"description": "OK", "schema": schema})
            }
        };
        set(&mut operation, "parameters", Value::Array(parameters));
        set(&mut operation, "responses", json!({"200": response}));
        item.insert((*verb).to_owned(), operation);
    }
    let mut shared = Vec::new();
    if resource.namespaced && !(collection && verbs.len() == 1) {
        shared.push("namespace");
    }
    if !collection {
        shared.push("name");
    }
    let shared: Vec<Value> = shared
        .into_iter()
        .map(|name| match dialect {
            Dialect::V3 => {
                json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}})
            }
            Dialect::V2 => json!({"name": name, "in": "path", "required": true, "type": "string"}),
        })
        .collect();
    item.insert("parameters".to_owned(), Value::Array(shared));
    Value::Object(item)
}

/// The query parameters of an action.
fn query(action: &str) -> &'static [&'static str] {
    match action {
        "list" | "deletecollection" => &[
            "allowWatchBookmarks",
            "continue",
            "fieldSelector",
            "labelSelector",
            "limit",
            "resourceVersion",
            "resourceVersionMatch",
            "sendInitialEvents",
            "timeoutSeconds",
            "watch",
        ],
        "post" | "put" => &["dryRun", "fieldManager", "fieldValidation"],
        "patch" => &["dryRun", "fieldManager", "fieldValidation", "force"],
        "delete" => &["dryRun", "gracePeriodSeconds", "propagationPolicy"],
        _ => &[],
    }
}

fn parameter(name: &str, dialect: Dialect) -> Value {
    let kind = match name {
        "limit" | "timeoutSeconds" | "gracePeriodSeconds" => "integer",
        "watch" | "allowWatchBookmarks" | "sendInitialEvents" | "force" => "boolean",
        _ => "string",
    };
    match dialect {
        Dialect::V3 => {
            json!({"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": true}})
        }
        Dialect::V2 => json!({"name": name, "in": "query", "type": kind, "uniqueItems": true}),
    }
}

fn set(value: &mut Value, name: &str, inner: Value) {
    if let Value::Object(map) = value {
        map.insert(name.to_owned(), inner);
    }
}

fn set_kind(item: &mut Value, gvk: &Value) {
    for operation in item
        .as_object_mut()
        .into_iter()
        .flat_map(Map::values_mut)
        .filter(|o| o.is_object())
    {
        set(operation, "x-kubernetes-group-version-kind", gvk.clone());
    }
}

/// In v3, a reference with something beside it stands in an `allOf`.
fn wrap_references(value: &mut Value) {
    match value {
        Value::Object(map) => {
            if map.len() > 1
                && map.get("$ref").is_some_and(Value::is_string)
                && let Some(reference) = map.remove("$ref")
            {
                map.insert("allOf".to_owned(), json!([{"$ref": reference}]));
            }
            map.values_mut().for_each(wrap_references);
        }
        Value::Array(items) => items.iter_mut().for_each(wrap_references),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn rename_references(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (name, inner) in map {
                match inner {
                    Value::String(text) if name == "$ref" => {
                        if let Some(definition) = text.strip_prefix(V3) {
                            *text = format!("{V2}{definition}");
                        }
                    }
                    other => rename_references(other),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(rename_references),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pods() -> Resource<'static> {
        Resource {
            group: "",
            version: "v1",
            kind: "Pod",
            plural: "pods",
            namespaced: true,
            subresources: &["status"],
            crd_schema: None,
        }
    }

    /// Every reference leads somewhere.
    fn check_references(value: &Value, root: &Value) {
        match value {
            Value::Object(map) => {
                if let Some(Value::String(reference)) = map.get("$ref") {
                    let pointer = reference.trim_start_matches('#').to_owned();
                    assert!(root.pointer(&pointer).is_some(), "{reference}");
                }
                map.values().for_each(|v| check_references(v, root));
            }
            Value::Array(items) => items.iter().for_each(|v| check_references(v, root)),
            _ => {}
        }
    }

    #[test]
    fn the_third_version_has_what_kubectl_looks_for() {
        let document = v3(&[pods()]);
        check_references(&document, &document);
        let schemas = &document["components"]["schemas"];
        assert_eq!(
            schemas["io.k8s.api.core.v1.Pod"]["x-kubernetes-group-version-kind"],
            json!([{"group": "", "kind": "Pod", "version": "v1"}])
        );
        let containers = &schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"];
        assert_eq!(containers["x-kubernetes-patch-merge-key"], "name");
        assert_eq!(containers["x-kubernetes-patch-strategy"], "merge");
        assert_eq!(containers["x-kubernetes-list-map-keys"], json!(["name"]));
        assert!(
            containers["description"]
                .as_str()
                .unwrap()
                .starts_with("List of containers")
        );
        assert!(
            schemas["io.k8s.api.core.v1.Pod"]["properties"]["spec"]["allOf"][0]["$ref"].is_string()
        );
        let patch = &document["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"];
        assert!(
            patch["parameters"]
                .as_array()
                .unwrap()
                .iter()
                .any(|p| p["name"] == "fieldValidation")
        );
        assert_eq!(
            patch["x-kubernetes-group-version-kind"],
            json!({"group": "", "kind": "Pod", "version": "v1"})
        );
        assert!(document["paths"]["/api/v1/pods"]["get"].is_object());
    }

    #[test]
    fn custom_kinds_are_described() {
        let schema = json!({"type": "object", "description": "A widget.", "properties": {"spec": {"type": "object", "description": "What is wanted."}}});
        let widget = Resource {
            group: "example.com",
            version: "v1",
            kind: "Widget",
            plural: "widgets",
            namespaced: false,
            subresources: &["status", "scale"],
            crd_schema: Some(&schema),
        };
        let document = v3(&[widget]);
        check_references(&document, &document);
        let described = &document["components"]["schemas"]["com.example.v1.Widget"];
        assert_eq!(described["description"], "A widget.");
        assert!(described["properties"]["metadata"]["allOf"].is_array());
        assert_eq!(
            document["paths"]["/apis/example.com/v1/widgets/{name}/scale"]["get"]["x-kubernetes-group-version-kind"]
                ["kind"],
            "Scale"
        );
    }

    #[test]
    fn the_second_version_has_no_references_of_the_third() {
        let document = v2(&[pods()]);
        check_references(&document, &document);
        assert!(!document.to_string().contains(V3));
        assert!(document["definitions"]["io.k8s.api.core.v1.Pod"].is_object());
    }
}
