//! Requests of handlers to the Kubernetes API: at the embedded one, and at one that answers what a test wants.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use configurator_apiserver::{ApiServer, ApiServerOptions};
use configurator_core::document::Document;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::kubernetes_call::PAGE_SIZE;
use configurator_core::request::{
    HttpRequest, KubernetesRequest, KubernetesVerb, ObjectRef, Operation, PatchType, Precondition,
    PropagationPolicy,
};
use configurator_core::result::Answer;
use configurator_host::sinks::kubernetes::{KubernetesSink, MAX_ANSWER};
use configurator_host::sinks::{Scope, Sink as _};
use configurator_store::Store;
use configurator_tests::unlimited::execute;
use configurator_tests::world::PATIENCE;
use expect_test::{Expect, expect};
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube::client::Body;
use kube::runtime::wait::{await_condition, conditions};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use KubernetesVerb::{Apply, Create, Delete, Get, List, Patch, Replace};

/// A sink over an API.
struct Cluster {
    client: Client,
    sink: KubernetesSink,
}

impl Cluster {
    fn of(client: Client) -> Self {
        Self {
            sink: KubernetesSink::new(&client.clone().into()),
            client,
        }
    }

    /// An embedded API of its own.
    async fn new() -> Self {
        Self::of(Client::new(server().await, "default"))
    }

    async fn send(&self, request: KubernetesRequest) -> Result<Answer, Fault> {
        self.send_as("demo", request).await
    }

    /// Sends a request on behalf of this Configurator.
    async fn send_as(
        &self,
        configurator: &str,
        request: KubernetesRequest,
    ) -> Result<Answer, Fault> {
        let scope = Scope {
            configurator: ObjectRef::cluster_scoped(configurator),
            ..Scope::default()
        };
        let operation = Operation::Kubernetes(request);
        tokio::time::timeout(PATIENCE, execute(&self.sink, &operation, &scope))
            .await
            .expect("the sink does not answer")
    }

    /// Sends a request that must succeed.
    async fn made(&self, request: KubernetesRequest) -> Value {
        let answer = self.send(request).await.unwrap();
        answer.query_objects[0].to_value()
    }

    /// Sends requests one after another: what each answers.
    async fn check(&self, requests: impl IntoIterator<Item = KubernetesRequest>, expected: Expect) {
        let mut text = String::new();
        for request in requests {
            text += &shown(self.send(request).await);
        }
        expected.assert_eq(&text);
    }
}

async fn server() -> ApiServer {
    ApiServer::open(Store::memory(), ApiServerOptions::new(Timestamp::now))
        .await
        .unwrap()
}

/// What came of a request, without what differs from run to run: a line for each object, and whether anything changed.
fn shown(answer: Result<Answer, Fault>) -> String {
    let answer = match answer {
        Ok(answer) => answer,
        Err(fault) => return fault_shown(&fault),
    };
    assert!(answer.http_response.is_none());
    let mut objects: Vec<String> = answer
        .query_objects
        .iter()
        .map(|object| without_chance(object.to_value()).to_string())
        .collect();
    if objects.is_empty() {
        objects.push("nothing".into());
    }
    let changed = if answer.changed { " (changed)" } else { "" };
    format!("{}{changed}\n", objects.join("\n"))
}

fn fault_shown(fault: &Fault) -> String {
    let status = fault
        .status
        .map(|status| format!(" [{status}]"))
        .unwrap_or_default();
    let wait = fault
        .retry_after
        .map(|wait| format!(" [after {wait:?}]"))
        .unwrap_or_default();
    format!("{fault}{status}{wait}\n")
}

fn without_chance(mut object: Value) -> Value {
    for part in ["metadata", "details"] {
        if let Some(part) = object.get_mut(part).and_then(Value::as_object_mut) {
            for field in [
                "uid",
                "resourceVersion",
                "creationTimestamp",
                "deletionTimestamp",
                "managedFields",
            ] {
                part.remove(field);
            }
        }
    }
    object
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// A request for something in the namespace `default`.
fn request(verb: KubernetesVerb, api_version: &str, kind: &str, name: &str) -> KubernetesRequest {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let plural = format!("{}s", kind.to_lowercase());
    let mut request = KubernetesRequest::new(verb, group, version, &plural);
    request.kind = kind.into();
    request.namespace = "default".into();
    request.name = name.into();
    request
}

/// A request for a ConfigMap.
fn map(verb: KubernetesVerb, name: &str) -> KubernetesRequest {
    request(verb, "v1", "ConfigMap", name)
}

fn deployment(verb: KubernetesVerb, name: &str) -> KubernetesRequest {
    request(verb, "apps/v1", "Deployment", name)
}

/// The same outside of namespaces, or in all of them.
fn everywhere(request: KubernetesRequest) -> KubernetesRequest {
    KubernetesRequest {
        namespace: String::new(),
        ..request
    }
}

fn namespace(verb: KubernetesVerb, name: &str) -> KubernetesRequest {
    everywhere(request(verb, "v1", "Namespace", name))
}

/// Parts of a request that most tests leave alone.
trait With: Sized {
    fn body(self, body: Value) -> Self;
    fn of(self, patch_type: PatchType) -> Self;
    fn on(self, subresource: &str) -> Self;
    fn selecting(self, labels: &str, fields: &str) -> Self;
    fn given(self, uid: Option<&str>, resource_version: Option<&str>) -> Self;
}

impl With for KubernetesRequest {
    fn body(mut self, body: Value) -> Self {
        self.body = Some(Document::of(&body).unwrap());
        self
    }

    fn of(mut self, patch_type: PatchType) -> Self {
        self.patch_type = patch_type;
        self
    }

    fn on(mut self, subresource: &str) -> Self {
        self.subresource = Some(subresource.into());
        self
    }

    fn selecting(mut self, labels: &str, fields: &str) -> Self {
        self.label_selector = (!labels.is_empty()).then(|| labels.into());
        self.field_selector = (!fields.is_empty()).then(|| fields.into());
        self
    }

    fn given(mut self, uid: Option<&str>, resource_version: Option<&str>) -> Self {
        self.precondition = Some(Precondition {
            uid: uid.map(Into::into),
            resource_version: resource_version.map(Into::into),
        });
        self
    }
}

/// The spec of a Deployment that runs nowhere.
fn spec(replicas: i64) -> Value {
    json!({"spec": {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": "nginx"}]},
        },
    }})
}

/// A definition of custom resources, `Widget`, with a status and a rule.
async fn define_widgets(cluster: &Cluster) {
    let definition = everywhere(request(
        Create,
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "widgets.example.com",
    ));
    let schema = json!({
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "required": ["size"],
                "properties": {"size": {"type": "integer", "maximum": 9}},
                "x-kubernetes-validations": [
                    {"rule": "self.size != 7", "message": "seven is taken", "fieldPath": ".size"},
                ],
            },
            "status": {"type": "object", "properties": {"seen": {"type": "boolean"}}},
        },
    });
    cluster
        .made(definition.body(json!({"spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema},
            }],
        }})))
        .await;
}

fn widget(verb: KubernetesVerb, name: &str) -> KubernetesRequest {
    request(verb, "example.com/v1", "Widget", name)
}

/// The body of an answer that a test makes up.
type MadeUp = UnsyncBoxBody<Bytes, std::io::Error>;

fn whole(text: impl Into<Bytes>) -> MadeUp {
    Full::new(text.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// An API that answers each request as `answer` says, and keeps what it was asked.
struct MadeUpApi {
    cluster: Cluster,
    asked: Arc<Mutex<Vec<String>>>,
}

impl MadeUpApi {
    fn new(
        answer: impl Fn(&Request<Body>) -> Response<MadeUp> + Clone + Send + Sync + 'static,
    ) -> Self {
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let keeps = asked.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            keeps
                .lock()
                .unwrap()
                .push(format!("{} {}", request.method(), request.uri()));
            std::future::ready(Ok::<_, std::convert::Infallible>(answer(&request)))
        });
        Self {
            cluster: Cluster::of(Client::new(service, "default")),
            asked,
        }
    }

    fn asked(&self) -> String {
        self.asked.lock().unwrap().join("\n")
    }
}

/// The embedded API, with something that happens before a request.
fn disturbed<F>(
    server: &ApiServer,
    before: impl Fn(Request<Body>, ApiServer) -> F + Clone + Send + Sync + 'static,
) -> Cluster
where
    F: Future<Output = Request<Body>> + Send + 'static,
{
    let server = server.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let server = server.clone();
        let before = before(request, server.clone());
        async move { server.oneshot(before.await).await }
    });
    Cluster::of(Client::new(service, "default"))
}

#[tokio::test]
async fn the_verbs_of_an_object() {
    let cluster = Cluster::new().await;
    cluster
        .check(
            [
                map(Create, "a").body(json!({"data": {"created": "1"}})),
                map(Get, "a"),
                map(List, ""),
                map(Patch, "a").body(json!({"data": {"patched": "2"}})),
                map(Replace, "a").body(json!({"data": {"replaced": "3"}})),
                map(Apply, "a").body(json!({"data": {"applied": "4"}})),
                map(Delete, "a"),
                map(Delete, "a"),
                map(Get, "a"),
                map(List, ""),
            ],
            expect![[r#"
                {"apiVersion":"v1","data":{"created":"1"},"kind":"ConfigMap","metadata":{"name":"a","namespace":"default"}} (changed)
                {"apiVersion":"v1","data":{"created":"1"},"kind":"ConfigMap","metadata":{"name":"a","namespace":"default"}}
                {"apiVersion":"v1","data":{"created":"1"},"kind":"ConfigMap","metadata":{"name":"a","namespace":"default"}}
                {"apiVersion":"v1","data":{"created":"1","patched":"2"},"kind":"ConfigMap","metadata":{"name":"a","namespace":"default"}} (changed)
                {"apiVersion":"v1","data":{"replaced":"3"},"kind":"ConfigMap","metadata":{"name":"a","namespace":"default"}} (changed)
                {"apiVersion":"v1","data":{"applied":"4","replaced":"3"},"kind":"ConfigMap","metadata":{"name":"a","namespace":"default"}} (changed)
                {"apiVersion":"v1","details":{"kind":"configmaps","name":"a"},"kind":"Status","metadata":{},"status":"Success"} (changed)
                nothing
                ResourceNotFound: get configmaps default/a: configmaps "a" not found (NotFound) [404]
                nothing
            "#]],
        )
        .await;
}

#[tokio::test]
async fn what_is_absent_is_not_found_except_to_be_made_or_deleted() {
    let cluster = Cluster::new().await;
    let elsewhere = |verb| KubernetesRequest {
        namespace: "nowhere".into(),
        ..map(verb, "a")
    };
    cluster
        .check(
            [
                map(Get, "a"),
                map(Patch, "a").body(json!({})),
                map(Replace, "a").body(json!({})),
                map(Delete, "a"),
                deployment(Get, "a").on("scale"),
                deployment(Patch, "a").on("status").body(json!({})),
                deployment(Apply, "a")
                    .on("status")
                    .body(json!({"apiVersion": "apps/v1", "kind": "Deployment"})),
                map(Apply, "a").body(json!({})),
                elsewhere(Get),
                elsewhere(Create).body(json!({})),
                elsewhere(Apply).body(json!({})),
                elsewhere(Delete),
                KubernetesRequest {
                    name: String::new(),
                    ..elsewhere(List)
                },
            ],
            expect![[r#"
                ResourceNotFound: get configmaps default/a: configmaps "a" not found (NotFound) [404]
                ResourceNotFound: patch configmaps default/a: configmaps "a" not found (NotFound) [404]
                ResourceNotFound: replace configmaps default/a: configmaps "a" not found (NotFound) [404]
                nothing
                ResourceNotFound: get deployments.apps/scale default/a: deployments.apps "a" not found (NotFound) [404]
                ResourceNotFound: patch deployments.apps/status default/a: deployments.apps "a" not found (NotFound) [404]
                ResourceNotFound: apply deployments.apps/status default/a: deployments.apps "a" not found (NotFound) [404]
                {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"default"}} (changed)
                ResourceNotFound: get configmaps nowhere/a: configmaps "a" not found (NotFound) [404]
                ResourceNotFound: create configmaps nowhere/a: namespaces "nowhere" not found (NotFound) [404]
                ResourceNotFound: apply configmaps nowhere/a: namespaces "nowhere" not found (NotFound) [404]
                nothing
                nothing
            "#]],
        )
        .await;
}

#[tokio::test]
async fn a_kind_that_is_not_served_is_not_found() {
    let cluster = Cluster::new().await;
    let other_version = |verb| KubernetesRequest {
        version: "v2".into(),
        ..map(verb, "a")
    };
    cluster
        .check(
            [
                widget(Get, "a"),
                everywhere(widget(List, "")),
                widget(Create, "a").body(json!({})),
                widget(Apply, "a").body(json!({})),
                widget(Delete, "a"),
                other_version(Get),
                deployment(Get, "a").on("logs"),
                map(Get, "a").on("status"),
            ],
            expect![[r#"
                ResourceNotFound: get widgets.example.com default/a: 404 Not Found [404]
                ResourceNotFound: list widgets.example.com: 404 Not Found [404]
                ResourceNotFound: create widgets.example.com default/a: 404 Not Found [404]
                ResourceNotFound: apply widgets.example.com default/a: 404 Not Found [404]
                nothing
                ResourceNotFound: get configmaps default/a: the server could not find the requested resource (NotFound) [404]
                UnsupportedResourceOperation: get deployments.apps/logs default/a: the server has no subresource "deployments/logs"
                UnsupportedResourceOperation: get configmaps/status default/a: the server has no subresource "configmaps/status"
            "#]],
        )
        .await;
}

#[tokio::test]
async fn what_a_body_does_not_say_the_request_does() {
    let cluster = Cluster::new().await;
    define_widgets(&cluster).await;
    cluster
        .check(
            [
                map(Create, "a").body(json!({})),
                widget(Apply, "a")
                    .body(json!({"spec": {"size": 1}, "metadata": {"labels": {"a": "b"}}})),
                map(Apply, "a").body(json!({"metadata": null})),
            ],
            expect![[r#"
                {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"default"}} (changed)
                {"apiVersion":"example.com/v1","kind":"Widget","metadata":{"generation":1,"labels":{"a":"b"},"name":"a","namespace":"default"},"spec":{"size":1}} (changed)
                {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"default"}}
            "#]],
        )
        .await;
    // What it says otherwise is the handler's mistake.
    cluster
        .check(
            [
                map(Replace, "a").body(json!({"kind": "Secret"})),
                map(Replace, "a").body(json!({"apiVersion": "v2"})),
                map(Replace, "a").body(json!({"metadata": {"name": "b"}})),
                map(Apply, "a").body(json!({"metadata": {"namespace": "other"}})),
                map(Replace, "a").body(json!({"metadata": "a"})),
                map(Replace, "a").body(json!([])),
                map(Create, "b"),
            ],
            expect![[r#"
                ResourceGeneric: the body has "Secret" as `kind`, and the request "ConfigMap"
                ResourceGeneric: the body has "v2" as `apiVersion`, and the request "v1"
                ResourceGeneric: the body has "b" as `name`, and the request "a"
                ResourceGeneric: the body has "other" as `namespace`, and the request "default"
                ResourceGeneric: the `metadata` of the body must be a JSON object
                ResourceGeneric: the body must be a JSON object
                ResourceGeneric: `create` needs `resource-body`
            "#]],
        )
        .await;
}

#[tokio::test]
async fn a_name_is_one_segment_of_the_path() {
    let api = MadeUpApi::new(|_| Response::new(whole("{}")));
    for name in ["a-b.c_d~e", "system:node", "a b+c&d=e", "ü"] {
        let request = KubernetesRequest {
            namespace: "n-s".into(),
            ..map(Get, name)
        };
        api.cluster.send(request).await.unwrap();
    }
    let list = map(List, "").selecting("a in (b,c),d!=e", "metadata.name=x&limit=1");
    // An answer without items is no list.
    let fault = api.cluster.send(list).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::ResourceGeneric, "{fault}");
    expect![[r#"
        GET /api/v1/namespaces/n-s/configmaps/a-b.c_d~e
        GET /api/v1/namespaces/n-s/configmaps/system%3Anode
        GET /api/v1/namespaces/n-s/configmaps/a%20b%2Bc%26d%3De
        GET /api/v1/namespaces/n-s/configmaps/%C3%BC
        GET /api/v1/namespaces/default/configmaps?limit=500&labelSelector=a%20in%20%28b%2Cc%29%2Cd%21%3De&fieldSelector=metadata.name%3Dx%26limit%3D1"#]].assert_eq(&api.asked());
}

#[tokio::test]
async fn every_write_has_the_field_manager_of_its_configurator() {
    let cluster = Cluster::new().await;
    cluster
        .made(map(Create, "a").body(json!({"data": {"a": "1"}})))
        .await;
    let patch = map(Patch, "a").body(json!({"data": {"b": "1"}}));
    cluster.send_as("patching", patch).await.unwrap();
    let apply = map(Apply, "a").body(json!({"data": {"c": "1"}}));
    cluster.send_as("applying", apply).await.unwrap();
    let object = cluster.made(map(Get, "a")).await;
    let managers: Vec<String> = object["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| format!("{} {}", text(entry, "/manager"), text(entry, "/operation")))
        .collect();
    expect![[r#"
        ccfgr/applying Apply
        ccfgr/demo Update
        ccfgr/patching Update"#]]
    .assert_eq(&managers.join("\n"));
}

#[tokio::test]
async fn selectors_choose_what_a_list_has() {
    let cluster = Cluster::new().await;
    cluster
        .made(namespace(Create, "shop").body(json!({})))
        .await;
    for (space, name, labels) in [
        ("default", "a", json!({"app": "web", "tier": "front"})),
        ("default", "b", json!({"app": "web"})),
        ("shop", "c", json!({"app": "db"})),
        ("shop", "d", json!({})),
    ] {
        let create = KubernetesRequest {
            namespace: space.into(),
            ..map(Create, name)
        };
        cluster
            .made(create.body(json!({"metadata": {"labels": labels}})))
            .await;
    }
    let mut table = String::new();
    for (space, labels, fields) in [
        ("", "", ""),
        ("shop", "", ""),
        ("nowhere", "", ""),
        ("", "app=web", ""),
        ("", "app in (web, db),tier", ""),
        ("", "app,!tier", ""),
        ("", "app!=web", ""),
        ("", "app=none", ""),
        ("", "", "metadata.name=a"),
        ("", "", "metadata.namespace!=shop"),
        ("", "app=db", "metadata.namespace=shop"),
        ("", "a b", ""),
        ("", "", "data.a=b"),
    ] {
        let list = KubernetesRequest {
            namespace: space.into(),
            ..map(List, "")
        };
        let found = match cluster.send(list.selecting(labels, fields)).await {
            Ok(answer) => {
                assert!(!answer.changed);
                let names: Vec<_> = answer
                    .query_objects
                    .iter()
                    .map(|object| text(&object.to_value(), "/metadata/name").to_owned())
                    .collect();
                names.join(" ")
            }
            Err(fault) => format!("{} [{}]", fault.kind, fault.status.unwrap()),
        };
        table += &format!("{space:?} {labels:?} {fields:?}: {found}\n");
    }
    expect![[r#"
        "" "" "": a b c d
        "shop" "" "": c d
        "nowhere" "" "": 
        "" "app=web" "": a b
        "" "app in (web, db),tier" "": a
        "" "app,!tier" "": b c
        "" "app!=web" "": c d
        "" "app=none" "": 
        "" "" "metadata.name=a": a
        "" "" "metadata.namespace!=shop": a b
        "" "app=db" "metadata.namespace=shop": c
        "" "a b" "": ResourceGeneric [400]
        "" "" "data.a=b": ResourceGeneric [400]
    "#]]
    .assert_eq(&table);
}

#[tokio::test]
async fn a_long_list_comes_whole_and_typed_page_by_page() {
    const NUMBER: usize = 2 * PAGE_SIZE + 200;
    let server = server().await;
    let pages: Arc<Mutex<Vec<String>>> = Arc::default();
    let keeps = pages.clone();
    let cluster = disturbed(&server, move |request, _| {
        if *request.method() == Method::GET {
            keeps.lock().unwrap().push(request.uri().to_string());
        }
        std::future::ready(request)
    });
    for number in 0..NUMBER {
        let create = KubernetesRequest {
            precheck_exist: false,
            ..map(Create, &format!("map-{number:04}"))
        };
        cluster.made(create.body(json!({}))).await;
    }
    let answer = cluster.send(map(List, "")).await.unwrap();
    let mut names = BTreeSet::new();
    for object in &answer.query_objects {
        let object = object.to_value();
        assert_eq!(text(&object, "/apiVersion"), "v1");
        assert_eq!(text(&object, "/kind"), "ConfigMap");
        names.insert(text(&object, "/metadata/name").to_owned());
    }
    assert_eq!(answer.query_objects.len(), NUMBER);
    assert_eq!(names.len(), NUMBER);
    let pages = pages.lock().unwrap();
    assert_eq!(pages.len(), 3, "{pages:?}");
    assert!(pages.iter().all(|page| page.contains("limit=500")));
}

#[tokio::test]
async fn items_of_a_list_get_their_type_from_the_request() {
    let api = MadeUpApi::new(|_| {
        Response::new(whole(
            r#"{"kind": "ThingList", "items": [{}, { "metadata": {"name": "a"}}, {"kind": "Other", "apiVersion": "v9"}]}"#,
        ))
    });
    let nameless = KubernetesRequest {
        kind: String::new(),
        ..deployment(List, "")
    };
    api.cluster
        .check(
            [deployment(List, ""), nameless],
            expect![[r#"
                {"apiVersion":"apps/v1","kind":"Deployment"}
                {"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"}}
                {"apiVersion":"v9","kind":"Other"}
                {}
                {"metadata":{"name":"a"}}
                {"apiVersion":"v9","kind":"Other"}
            "#]],
        )
        .await;
}

#[tokio::test]
async fn a_list_that_grew_too_old_is_read_again_from_the_start_once() {
    let page = |request: &Request<Body>, patience: usize, asked: usize| {
        let is_first = !request.uri().query().unwrap().contains("continue=");
        let mut answer = Response::new(whole(match is_first {
            true => r#"{"metadata": {"continue": "t 1"}, "items": [{"metadata": {"name": "a"}}]}"#,
            false => r#"{"metadata": {"continue": ""}, "items": [{"metadata": {"name": "b"}}]}"#,
        }));
        if !is_first && asked < patience {
            *answer.status_mut() = http::StatusCode::GONE;
            *answer.body_mut() =
                whole(r#"{"message": "the token has expired", "reason": "Expired"}"#);
        }
        answer
    };
    for (patience, expected) in [
        (
            3,
            expect![[r#"
                GET /api/v1/configmaps?limit=500
                GET /api/v1/configmaps?limit=500&continue=t%201
                GET /api/v1/configmaps?limit=500
                GET /api/v1/configmaps?limit=500&continue=t%201
                {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}
                {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"}}
            "#]],
        ),
        (
            9,
            expect![[r#"
                GET /api/v1/configmaps?limit=500
                GET /api/v1/configmaps?limit=500&continue=t%201
                GET /api/v1/configmaps?limit=500
                GET /api/v1/configmaps?limit=500&continue=t%201
                ResourceGeneric: list configmaps: the token has expired (Expired) [410]
            "#]],
        ),
    ] {
        let number = Arc::new(Mutex::new(0));
        let api = MadeUpApi::new(move |request| {
            let mut number = number.lock().unwrap();
            *number += 1;
            page(request, patience, *number)
        });
        let found = shown(api.cluster.send(everywhere(map(List, ""))).await);
        expected.assert_eq(&format!("{}\n{found}", api.asked()));
    }
}

#[tokio::test]
async fn an_answer_has_a_limit_and_so_has_a_list_of_all_its_pages() {
    let padded = |length: usize| {
        let mut page = br#"{"metadata": {"continue": "more"}, "items": []"#.to_vec();
        page.resize(length - 1, b' ');
        page.push(b'}');
        page
    };
    for length in [MAX_ANSWER + 1, MAX_ANSWER / 2 + 1] {
        let page = Bytes::from(padded(length));
        let api = MadeUpApi::new(move |_| Response::new(whole(page.clone())));
        let fault = api.cluster.send(map(List, "")).await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::ResourceGeneric);
        assert!(fault.message.contains("67108864 bytes"), "{fault}");
    }
}

#[tokio::test]
async fn an_object_that_exists_is_kept_unless_the_handler_wants_to_know() {
    let cluster = Cluster::new().await;
    let create = |value: &str, precheck_exist| KubernetesRequest {
        precheck_exist,
        ..map(Create, "a").body(json!({"data": {"k": value}}))
    };
    cluster
        .check(
            [
                create("1", true),
                create("2", true),
                create("3", false),
                map(Delete, "a"),
                create("4", false),
            ],
            expect![[r#"
                {"apiVersion":"v1","data":{"k":"1"},"kind":"ConfigMap","metadata":{"name":"a","namespace":"default"}} (changed)
                {"apiVersion":"v1","data":{"k":"1"},"kind":"ConfigMap","metadata":{"name":"a","namespace":"default"}}
                ResourceConflict: create configmaps default/a: configmaps "a" already exists (AlreadyExists) [409]
                {"apiVersion":"v1","details":{"kind":"configmaps","name":"a"},"kind":"Status","metadata":{},"status":"Success"} (changed)
                {"apiVersion":"v1","data":{"k":"4"},"kind":"ConfigMap","metadata":{"name":"a","namespace":"default"}} (changed)
            "#]],
        )
        .await;
}

#[tokio::test]
async fn an_object_that_somebody_creates_in_between_is_the_result() {
    let server = server().await;
    let cluster = disturbed(&server, async |request, server| {
        if *request.method() == Method::POST {
            let theirs = Cluster::of(Client::new(server, "default"));
            let create = map(Create, "a").body(json!({"data": {"k": "theirs"}}));
            theirs.made(create).await;
        }
        request
    });
    let create = map(Create, "a").body(json!({"data": {"k": "ours"}}));
    cluster.check([create], expect![[r#"
        {"apiVersion":"v1","data":{"k":"theirs"},"kind":"ConfigMap","metadata":{"name":"a","namespace":"default"}}
    "#]]).await;
}

#[tokio::test]
async fn a_subresource_is_created_without_looking_first() {
    let cluster = Cluster::new().await;
    let pod = request(Create, "v1", "Pod", "a")
        .body(json!({"spec": {"containers": [{"name": "main", "image": "nginx"}]}}));
    cluster.made(pod).await;
    let bind = || {
        request(Create, "v1", "Pod", "a")
            .on("binding")
            .body(json!({"apiVersion": "v1", "kind": "Binding", "target": {"kind": "Node", "name": "n1"}}))
    };
    cluster.check([bind(), bind()], expect![[r#"
        {"apiVersion":"v1","code":201,"kind":"Status","metadata":{},"status":"Success"} (changed)
        ResourceConflict: create pods/binding default/a: Operation cannot be fulfilled on pods/binding "a": pod a is already assigned to node "n1" (Conflict) [409]
    "#]]).await;
    let pod = cluster.made(request(Get, "v1", "Pod", "a")).await;
    assert_eq!(text(&pod, "/spec/nodeName"), "n1");
}

#[tokio::test]
async fn each_patch_type_has_its_own_rules() {
    let cluster = Cluster::new().await;
    define_widgets(&cluster).await;
    cluster
        .made(widget(Create, "a").body(json!({"spec": {"size": 1}})))
        .await;
    cluster
        .made(map(Create, "a").body(json!({"data": {"a": "1", "b": "2"}})))
        .await;
    cluster
        .check(
            [
                map(Patch, "a").body(json!({"data": {"a": null, "c": "3"}})),
                map(Patch, "a").of(PatchType::Json).body(json!([
                    {"op": "test", "path": "/data/c", "value": "3"},
                    {"op": "move", "from": "/data/c", "path": "/data/d"},
                ])),
                map(Patch, "a").of(PatchType::Json).body(json!([
                    {"op": "test", "path": "/data/c", "value": "3"},
                    {"op": "remove", "path": "/data/d"},
                ])),
                widget(Patch, "a").body(json!({"spec": {"size": 2}})),
                widget(Patch, "a")
                    .of(PatchType::Strategic)
                    .body(json!({"spec": {"size": 2}})),
                map(Patch, "a").body(json!([])),
            ],
            expect![[r#"
                {"apiVersion":"v1","data":{"b":"2","c":"3"},"kind":"ConfigMap","metadata":{"name":"a","namespace":"default"}} (changed)
                {"apiVersion":"v1","data":{"b":"2","d":"3"},"kind":"ConfigMap","metadata":{"name":"a","namespace":"default"}} (changed)
                ResourceMutation: patch configmaps default/a: the server rejected our request due to an error in our request (Invalid) [422]
                {"apiVersion":"example.com/v1","kind":"Widget","metadata":{"generation":2,"name":"a","namespace":"default"},"spec":{"size":2}} (changed)
                UnsupportedResourceOperation: patch widgets.example.com default/a: the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml (UnsupportedMediaType) [415]
                ResourceGeneric: the patch must be a JSON object
            "#]],
        )
        .await;
    // A strategic patch knows by which field the containers of a Pod are told apart; a merge patch replaces the list.
    cluster.made(deployment(Create, "web").body(spec(1))).await;
    let sidecar = json!({"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "proxy"}]}}}});
    for (patch_type, containers) in [(PatchType::Strategic, 2), (PatchType::Merge, 1)] {
        let patch = deployment(Patch, "web")
            .of(patch_type)
            .body(sidecar.clone());
        let object = cluster.made(patch).await;
        let found = object.pointer("/spec/template/spec/containers").unwrap();
        assert_eq!(
            found.as_array().unwrap().len(),
            containers,
            "{patch_type:?}"
        );
    }
}

#[tokio::test]
async fn an_apply_is_complete_and_takes_nothing_from_others_unless_forced() {
    let cluster = Cluster::new().await;
    let apply = |data: Value| map(Apply, "a").body(json!({"data": data}));
    let forced = |data: Value| KubernetesRequest {
        force: true,
        ..apply(data)
    };
    let mut said = String::new();
    for (configurator, request) in [
        ("one", apply(json!({"a": "1", "b": "1"}))),
        ("two", apply(json!({"b": "1", "c": "1"}))),
        ("two", apply(json!({"a": "2", "b": "2", "c": "1"}))),
        ("one", apply(json!({"a": "1", "b": "1"}))),
        ("two", forced(json!({"a": "2", "c": "1"}))),
        ("one", apply(json!({"a": "1"}))),
        ("one", apply(json!({}))),
        ("two", apply(json!({"a": "2"}))),
    ] {
        let answer = cluster.send_as(configurator, request).await;
        said += &format!("{configurator}: {}", shown(answer));
    }
    expect![[r#"
        one: {"apiVersion":"v1","data":{"a":"1","b":"1"},"kind":"ConfigMap","metadata":{"name":"a","namespace":"default"}} (changed)
        two: {"apiVersion":"v1","data":{"a":"1","b":"1","c":"1"},"kind":"ConfigMap","metadata":{"name":"a","namespace":"default"}} (changed)
        two: ResourceConflict: apply configmaps default/a: Apply failed with 2 conflicts: conflicts with "ccfgr/one":
        - .data.a
        - .data.b (Conflict) [409]
        one: {"apiVersion":"v1","data":{"a":"1","b":"1","c":"1"},"kind":"ConfigMap","metadata":{"name":"a","namespace":"default"}}
        two: {"apiVersion":"v1","data":{"a":"2","b":"1","c":"1"},"kind":"ConfigMap","metadata":{"name":"a","namespace":"default"}} (changed)
        one: ResourceConflict: apply configmaps default/a: Apply failed with 1 conflict: conflict with "ccfgr/two": .data.a (Conflict) [409]
        one: {"apiVersion":"v1","data":{"a":"2","c":"1"},"kind":"ConfigMap","metadata":{"name":"a","namespace":"default"}} (changed)
        two: {"apiVersion":"v1","data":{"a":"2"},"kind":"ConfigMap","metadata":{"name":"a","namespace":"default"}} (changed)
    "#]].assert_eq(&said);
}

#[tokio::test]
async fn the_conflict_of_an_apply_names_whoever_wrote_the_field() {
    let cluster = Cluster::new().await;
    cluster.made(deployment(Create, "web").body(spec(1))).await;
    let scale = deployment(Patch, "web")
        .on("scale")
        .body(json!({"spec": {"replicas": 2}}));
    cluster.send_as("scaler", scale).await.unwrap();
    let apply = deployment(Apply, "web").body(spec(3));
    let fault = cluster.send_as("owner", apply).await.unwrap_err();
    expect![[r#"
        ResourceConflict: apply deployments.apps default/web: Apply failed with 1 conflict: conflict with "ccfgr/scaler" with subresource "scale" using apps/v1: .spec.replicas (Conflict) [409]
    "#]].assert_eq(&fault_shown(&fault));
}

#[tokio::test]
async fn a_write_that_changes_nothing_says_so() {
    let cluster = Cluster::new().await;
    define_widgets(&cluster).await;
    let apply = || map(Apply, "a").body(json!({"data": {"a": "1"}}));
    let patch = || map(Patch, "a").body(json!({"data": {"b": "1"}}));
    let replace = || map(Replace, "a").body(json!({"data": {"a": "1"}}));
    let spec = || widget(Apply, "a").body(json!({"spec": {"size": 1}}));
    let status = || {
        let status =
            json!({"apiVersion": "example.com/v1", "kind": "Widget", "status": {"seen": true}});
        widget(Apply, "a").on("status").body(status)
    };
    let requests = [
        apply(),
        apply(),
        map(Get, "a"),
        patch(),
        patch(),
        apply(),
        replace(),
        replace(),
        map(Create, "a").body(json!({})),
        // The status has the version of its object.
        spec(),
        status(),
        status(),
        spec(),
        map(Delete, "a"),
        map(Delete, "a"),
        apply(),
    ];
    let mut table = String::new();
    for request in requests {
        let operation = Operation::Kubernetes(request.clone());
        let answer = cluster.send(request).await.unwrap();
        table += &format!("{operation}: {}\n", answer.changed);
    }
    expect![[r#"
        apply configmaps default/a: true
        apply configmaps default/a: false
        get configmaps default/a: false
        patch configmaps default/a: true
        patch configmaps default/a: false
        apply configmaps default/a: false
        replace configmaps default/a: true
        replace configmaps default/a: false
        create configmaps default/a: false
        apply widgets.example.com default/a: true
        apply widgets.example.com/status default/a: true
        apply widgets.example.com/status default/a: false
        apply widgets.example.com default/a: false
        delete configmaps default/a: true
        delete configmaps default/a: false
        apply configmaps default/a: true
    "#]]
    .assert_eq(&table);
    // A sink that has not yet seen the object cannot tell, and then it is better to say too much.
    let fresh = Cluster::of(cluster.client.clone());
    assert!(fresh.send(apply()).await.unwrap().changed);
    assert!(!fresh.send(apply()).await.unwrap().changed);
}

#[tokio::test]
async fn status_and_scale_are_read_and_written_apart_from_their_object() {
    let cluster = Cluster::new().await;
    let seen = |verb, seen: bool| {
        widget(verb, "a")
            .on("status")
            .body(json!({"apiVersion": "example.com/v1", "kind": "Widget", "spec": {"size": 9}, "status": {"seen": seen}}))
    };
    define_widgets(&cluster).await;
    let made = cluster
        .made(widget(Create, "a").body(json!({"spec": {"size": 1}, "status": {"seen": true}})))
        .await;
    let version = text(&made, "/metadata/resourceVersion").to_owned();
    cluster
        .check(
            [
                widget(Get, "a"),
                seen(Replace, true).given(None, Some(&version)),
                seen(Patch, false),
                seen(Apply, false),
                widget(Patch, "a").body(json!({"spec": {"size": 2}, "status": {"seen": true}})),
                widget(Get, "a").on("status"),
                widget(Get, "a").on("scale"),
            ],
            expect![[r#"
                {"apiVersion":"example.com/v1","kind":"Widget","metadata":{"generation":1,"name":"a","namespace":"default"},"spec":{"size":1}}
                {"apiVersion":"example.com/v1","kind":"Widget","metadata":{"generation":1,"name":"a","namespace":"default"},"spec":{"size":1},"status":{"seen":true}} (changed)
                {"apiVersion":"example.com/v1","kind":"Widget","metadata":{"generation":1,"name":"a","namespace":"default"},"spec":{"size":1},"status":{"seen":false}} (changed)
                {"apiVersion":"example.com/v1","kind":"Widget","metadata":{"generation":1,"name":"a","namespace":"default"},"spec":{"size":1},"status":{"seen":false}} (changed)
                {"apiVersion":"example.com/v1","kind":"Widget","metadata":{"generation":2,"name":"a","namespace":"default"},"spec":{"size":2},"status":{"seen":false}} (changed)
                {"apiVersion":"example.com/v1","kind":"Widget","metadata":{"generation":2,"name":"a","namespace":"default"},"spec":{"size":2},"status":{"seen":false}}
                UnsupportedResourceOperation: get widgets.example.com/scale default/a: the server has no subresource "widgets/scale"
            "#]],
        )
        .await;
    cluster.made(deployment(Create, "web").body(spec(1))).await;
    let scale = |verb, replicas: i64| {
        deployment(verb, "web")
            .on("scale")
            .body(json!({"spec": {"replicas": replicas}}))
    };
    cluster
        .check(
            [
                deployment(Get, "web").on("scale"),
                scale(Replace, 2),
                scale(Replace, 2),
                scale(Patch, 3),
                scale(Patch, -1),
            ],
            expect![[r#"
                {"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"web","namespace":"default"},"spec":{"replicas":1},"status":{"replicas":0,"selector":"app=web"}}
                {"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"web","namespace":"default"},"spec":{"replicas":2},"status":{"replicas":0,"selector":"app=web"}} (changed)
                {"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"web","namespace":"default"},"spec":{"replicas":2},"status":{"replicas":0,"selector":"app=web"}}
                {"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"web","namespace":"default"},"spec":{"replicas":3},"status":{"replicas":0,"selector":"app=web"}} (changed)
                ResourceMutation: patch deployments.apps/scale default/web: Scale.autoscaling "web" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0 (Invalid) [422]
            "#]],
        )
        .await;
    let object = cluster.made(deployment(Get, "web")).await;
    assert_eq!(object["spec"]["replicas"], 3);
}

#[tokio::test]
async fn a_precondition_that_does_not_hold_is_a_conflict_and_changes_nothing() {
    let cluster = Cluster::new().await;
    let mut table = String::new();
    for (what, change) in [
        (
            "replace",
            map(Replace, "a").body(json!({"data": {"k": "2"}})),
        ),
        ("merge", map(Patch, "a").body(json!({"data": {"k": "2"}}))),
        (
            "strategic",
            map(Patch, "a")
                .of(PatchType::Strategic)
                .body(json!({"data": {"k": "2"}})),
        ),
        (
            "json",
            map(Patch, "a")
                .of(PatchType::Json)
                .body(json!([{"op": "replace", "path": "/data/k", "value": "2"}])),
        ),
        (
            "apply",
            KubernetesRequest {
                force: true,
                ..map(Apply, "a").body(json!({"data": {"k": "2"}}))
            },
        ),
        ("delete", map(Delete, "a")),
    ] {
        let made = cluster
            .made(map(Create, "a").body(json!({"data": {"k": "1"}})))
            .await;
        let uid = text(&made, "/metadata/uid");
        let version = text(&made, "/metadata/resourceVersion");
        for (which, uid, version) in [
            ("other uid", Some("u"), None),
            ("other version", None, Some("1")),
            ("other uid, same version", Some("u"), Some(version)),
            ("same uid, other version", Some(uid), Some("1")),
            ("same uid, same version", Some(uid), Some(version)),
        ] {
            let answer = cluster.send(change.clone().given(uid, version)).await;
            let found = match &answer {
                Ok(_) => "done".to_owned(),
                Err(fault) => fault.kind.to_string(),
            };
            table += &format!("{what}, {which}: {found}\n");
            if answer.is_err() {
                assert_eq!(cluster.made(map(Get, "a")).await, made);
            }
        }
        cluster.send(map(Delete, "a")).await.unwrap();
    }
    expect![[r#"
        replace, other uid: ResourceConflict
        replace, other version: ResourceConflict
        replace, other uid, same version: ResourceConflict
        replace, same uid, other version: ResourceConflict
        replace, same uid, same version: done
        merge, other uid: ResourceConflict
        merge, other version: ResourceConflict
        merge, other uid, same version: ResourceConflict
        merge, same uid, other version: ResourceConflict
        merge, same uid, same version: done
        strategic, other uid: ResourceConflict
        strategic, other version: ResourceConflict
        strategic, other uid, same version: ResourceConflict
        strategic, same uid, other version: ResourceConflict
        strategic, same uid, same version: done
        json, other uid: ResourceConflict
        json, other version: ResourceConflict
        json, other uid, same version: ResourceConflict
        json, same uid, other version: ResourceConflict
        json, same uid, same version: done
        apply, other uid: ResourceConflict
        apply, other version: ResourceConflict
        apply, other uid, same version: ResourceConflict
        apply, same uid, other version: ResourceConflict
        apply, same uid, same version: done
        delete, other uid: ResourceConflict
        delete, other version: ResourceConflict
        delete, other uid, same version: ResourceConflict
        delete, same uid, other version: ResourceConflict
        delete, same uid, same version: done
    "#]]
    .assert_eq(&table);
}

#[tokio::test]
async fn preconditions_of_what_is_absent() {
    let cluster = Cluster::new().await;
    let old = |request: KubernetesRequest| request.given(None, Some("1"));
    cluster
        .check(
            [
                old(map(Replace, "a").body(json!({}))),
                old(map(Patch, "a").body(json!({}))),
                old(map(Apply, "a").body(json!({}))),
                old(map(Delete, "a")),
            ],
            expect![[r#"
                ResourceNotFound: replace configmaps default/a: configmaps "a" not found (NotFound) [404]
                ResourceNotFound: patch configmaps default/a: configmaps "a" not found (NotFound) [404]
                ResourceConflict: apply configmaps default/a: the object does not exist any more
                nothing
            "#]],
        )
        .await;
}

#[tokio::test]
async fn a_precondition_does_not_hide_another_mistake() {
    let cluster = Cluster::new().await;
    let made = cluster.made(deployment(Create, "web").body(spec(1))).await;
    let uid = text(&made, "/metadata/uid");
    let wrong = |patch_type, body| {
        deployment(Patch, "web")
            .of(patch_type)
            .body(body)
            .given(Some(uid), None)
    };
    cluster
        .check(
            [
                wrong(
                    PatchType::Json,
                    json!([{"op": "replace", "path": "/spec/replicas", "value": -1}]),
                ),
                wrong(PatchType::Merge, json!({"spec": {"replicas": -1}})),
                wrong(PatchType::Json, json!({"spec": {"replicas": 1}})),
                wrong(PatchType::Merge, json!([])),
                wrong(PatchType::Merge, json!({"metadata": "a"})),
            ],
            expect![[r#"
                ResourceMutation: patch deployments.apps default/web: Deployment.apps "web" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0 (Invalid) [422]
                ResourceMutation: patch deployments.apps default/web: Deployment.apps "web" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0 (Invalid) [422]
                ResourceGeneric: the body is not a JSON Patch (RFC 6902): line 1, column 0
                ResourceGeneric: the patch must be a JSON object
                ResourceGeneric: the `metadata` of the patch must be a JSON object
            "#]],
        )
        .await;
}

/// What is null is as good as absent, so what the host fills in has its place all the same.
#[tokio::test]
async fn a_body_with_empty_metadata_keeps_its_precondition() {
    let cluster = Cluster::new().await;
    cluster.made(map(Create, "a").body(json!({}))).await;
    let body = json!({"metadata": null, "data": {"k": "1"}});
    for verb in [Replace, Apply] {
        let change = map(verb, "a").body(body.clone()).given(Some("u"), None);
        let fault = cluster.send(change).await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::ResourceConflict, "{fault}");
    }
}

/// The uid is an immutable field to a server that has no other way to check it.
#[tokio::test]
async fn a_uid_that_may_not_change_is_a_conflict() {
    let api = MadeUpApi::new(|_| {
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid", "code": 422,
            "message": "ConfigMap \"a\" is invalid: metadata.uid: Invalid value: \"u\": field is immutable",
            "details": {"name": "a", "kind": "ConfigMap", "causes": [
                {"reason": "FieldValueInvalid", "message": "Invalid value: \"u\": field is immutable", "field": "metadata.uid"},
            ]},
        });
        Response::builder()
            .status(422)
            .body(whole(status.to_string()))
            .unwrap()
    });
    let uid = Some("u");
    api.cluster
        .check(
            [
                map(Patch, "a").body(json!({})).given(uid, None),
                map(Apply, "a").body(json!({})).given(uid, None),
                map(Patch, "a").body(json!({"metadata": {"uid": "u"}})),
            ],
            expect![[r#"
                ResourceConflict: patch configmaps default/a: ConfigMap "a" is invalid: metadata.uid: Invalid value: "u": field is immutable (Invalid) [422]
                ResourceConflict: apply configmaps default/a: ConfigMap "a" is invalid: metadata.uid: Invalid value: "u": field is immutable (Invalid) [422]
                ResourceMutation: patch configmaps default/a: ConfigMap "a" is invalid: metadata.uid: Invalid value: "u": field is immutable (Invalid) [422]
            "#]],
        )
        .await;
}

#[tokio::test]
async fn dependents_go_first_afterwards_or_not_at_all() {
    let cluster = Cluster::new().await;
    let api = |kind: &str| -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", kind));
        Api::default_namespaced_with(cluster.client.clone(), &resource)
    };
    let maps = api("ConfigMap");
    let mut table = String::new();
    for policy in [
        PropagationPolicy::Background,
        PropagationPolicy::Foreground,
        PropagationPolicy::Orphan,
    ] {
        let owner = cluster.made(map(Create, "owner").body(json!({}))).await;
        let owner_uid = text(&owner, "/metadata/uid");
        // The dependent has a finalizer, so that what happens in between can be seen.
        let dependent = cluster
            .made(map(Create, "dependent").body(json!({"metadata": {
                "finalizers": ["example.com/hold"],
                "ownerReferences": [{
                    "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner_uid,
                    "blockOwnerDeletion": true,
                }],
            }})))
            .await;
        let dependent_uid = text(&dependent, "/metadata/uid");
        let delete = KubernetesRequest {
            propagation_policy: policy,
            ..map(Delete, "owner")
        };
        let answer = cluster.send(delete).await.unwrap();
        assert!(answer.changed);
        let answered = answer.query_objects[0].to_value();
        let holders = answered.pointer("/metadata/finalizers").cloned();
        table += &format!(
            "{policy:?}: {} {}\n",
            text(&answered, "/kind"),
            holders.unwrap_or_default()
        );
        let is_let_go = |object: Option<&DynamicObject>| {
            object.is_some_and(|object| object.metadata.owner_references.is_none())
        };
        let is_going = |object: Option<&DynamicObject>| {
            object.is_some_and(|object| object.metadata.deletion_timestamp.is_some())
        };
        let waiting = async {
            match policy {
                PropagationPolicy::Background | PropagationPolicy::Foreground => {
                    await_condition(maps.clone(), "dependent", is_going)
                        .await
                        .unwrap();
                }
                PropagationPolicy::Orphan => {
                    await_condition(maps.clone(), "dependent", is_let_go)
                        .await
                        .unwrap();
                }
            }
            let owner = cluster.send(map(Get, "owner")).await;
            let release = json!({"metadata": {"finalizers": null}});
            cluster.made(map(Patch, "dependent").body(release)).await;
            await_condition(maps.clone(), "owner", conditions::is_deleted(owner_uid))
                .await
                .unwrap();
            if policy == PropagationPolicy::Orphan {
                assert!(maps.get_opt("dependent").await.unwrap().is_some());
                cluster.send(map(Delete, "dependent")).await.unwrap();
            }
            await_condition(
                maps.clone(),
                "dependent",
                conditions::is_deleted(dependent_uid),
            )
            .await
            .unwrap();
            owner.is_ok()
        };
        let waits = tokio::time::timeout(PATIENCE, waiting)
            .await
            .expect("in vain");
        if policy == PropagationPolicy::Foreground {
            assert!(waits, "the owner waits for what it owns");
        }
        if policy == PropagationPolicy::Background {
            assert!(!waits, "the owner has gone at once");
        }
    }
    expect![[r#"
        Background: Status null
        Foreground: ConfigMap ["foregroundDeletion"]
        Orphan: ConfigMap ["orphan"]
    "#]]
    .assert_eq(&table);
}

#[tokio::test]
async fn a_refusal_names_the_field() {
    let cluster = Cluster::new().await;
    define_widgets(&cluster).await;
    cluster
        .check(
            [
                deployment(Create, "web").body(spec(-1)),
                deployment(Create, "web").body(json!({"spec": {"replicas": "many"}})),
                map(Create, "Not_A_Name").body(json!({})),
                map(Create, "a").body(json!({"data": {"not a key": "1"}})),
                map(Create, "a").body(json!({"data": {"a": 1}})),
                widget(Create, "a").body(json!({"spec": {}})),
                widget(Apply, "a").body(json!({"spec": {"size": 10}})),
                widget(Apply, "a").body(json!({"spec": {"size": 7}})),
                widget(Create, "a").body(json!({"spec": {"size": "big"}})),
                widget(Create, "a").body(json!({"spec": {"size": 1}})),
                widget(Patch, "a").body(json!({"spec": {"size": 10}})),
                widget(Replace, "a").body(json!({"spec": {"size": 2}})),
            ],
            expect![[r#"
                ResourceMutation: create deployments.apps default/web: Deployment.apps "web" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0 (Invalid) [422]
                ResourceMutation: create deployments.apps default/web: Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32 (BadRequest) [400]
                ResourceMutation: create configmaps default/Not_A_Name: ConfigMap "Not_A_Name" is invalid: metadata.name: Invalid value: "Not_A_Name": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*') (Invalid) [422]
                ResourceMutation: create configmaps default/a: ConfigMap "a" is invalid: data[not a key]: Invalid value: "not a key": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+') (Invalid) [422]
                ResourceMutation: create configmaps default/a: ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ConfigMap.data of type string (BadRequest) [400]
                ResourceMutation: create widgets.example.com default/a: Widget.example.com "a" is invalid: [spec.size: Required value, <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation] (Invalid) [422]
                ResourceMutation: apply widgets.example.com default/a: Widget.example.com "a" is invalid: spec.size: Invalid value: 10: spec.size in body should be less than or equal to 9 (Invalid) [422]
                ResourceMutation: apply widgets.example.com default/a: Widget.example.com "a" is invalid: spec.size: Invalid value: seven is taken (Invalid) [422]
                ResourceMutation: create widgets.example.com default/a: Widget.example.com "a" is invalid: [spec.size: Invalid value: "string": spec.size in body must be of type integer: "string", <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation] (Invalid) [422]
                {"apiVersion":"example.com/v1","kind":"Widget","metadata":{"generation":1,"name":"a","namespace":"default"},"spec":{"size":1}} (changed)
                ResourceMutation: patch widgets.example.com default/a: Widget.example.com "a" is invalid: spec.size: Invalid value: 10: spec.size in body should be less than or equal to 9 (Invalid) [422]
                ResourceMutation: replace widgets.example.com default/a: widgets.example.com "a" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update (Invalid) [422]
            "#]],
        )
        .await;
}

#[tokio::test]
async fn a_namespace_that_is_going_takes_nothing_new() {
    let cluster = Cluster::new().await;
    let shop = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    cluster.made(namespace(Create, "shop").body(shop)).await;
    cluster.send(namespace(Delete, "shop")).await.unwrap();
    let create = KubernetesRequest {
        namespace: "shop".into(),
        ..map(Create, "a")
    };
    cluster.check([create.body(json!({}))], expect![[r#"
        ResourceMutation: create configmaps shop/a: configmaps "a" is forbidden: unable to create new content in namespace shop because it is being terminated (Forbidden) [403]
    "#]]).await;
}

/// This host keeps no copy for handlers: what may be answered from one is read at the server.
#[tokio::test]
async fn cached_reads_see_what_was_just_written() {
    let cluster = Cluster::new().await;
    let cached = |verb, name| KubernetesRequest {
        cached: true,
        ..map(verb, name)
    };
    for value in ["1", "2"] {
        let apply = map(Apply, "a").body(json!({"data": {"k": value}}));
        cluster.made(apply).await;
        assert_eq!(cluster.made(cached(Get, "a")).await["data"]["k"], value);
        assert_eq!(cluster.made(cached(List, "")).await["data"]["k"], value);
    }
    cluster.send(map(Delete, "a")).await.unwrap();
    cluster
        .check(
            [cached(Get, "a"), cached(List, "")],
            expect![[r#"
                ResourceNotFound: get configmaps default/a: configmaps "a" not found (NotFound) [404]
                nothing
            "#]],
        )
        .await;
}

#[tokio::test]
async fn every_status_of_a_server_is_classified_with_its_words_and_its_patience() {
    let mut table = String::new();
    for (status, header, body) in [
        (400, "", r#"{"message": "no", "reason": "BadRequest"}"#),
        (
            401,
            "",
            r#"{"message": "Unauthorized", "reason": "Unauthorized"}"#,
        ),
        (
            403,
            "",
            r#"{"message": "maps is forbidden", "reason": "Forbidden"}"#,
        ),
        (
            403,
            "",
            r#"{"message": "it is being terminated", "reason": "Forbidden", "details": {"causes": [{"reason": "NamespaceTerminating", "message": "x"}]}}"#,
        ),
        (405, "", "{}"),
        (409, "", r#"{"message": "modified", "reason": "Conflict"}"#),
        (413, "", "request entity too large"),
        (422, "", r#"{"message": "is invalid", "reason": "Invalid"}"#),
        (
            429,
            "7",
            r#"{"message": "slow down", "details": {"retryAfterSeconds": 1}}"#,
        ),
        (
            429,
            "",
            r#"{"message": "slow down", "details": {"retryAfterSeconds": 3}}"#,
        ),
        (
            429,
            "Wed, 21 Oct 2026 07:28:00 GMT",
            r#"{"message": "slow down", "details": {"retryAfterSeconds": 3}}"#,
        ),
        (500, "", r#"{"message": "etcd", "reason": "InternalError"}"#),
        (502, "", "<html>Bad Gateway</html>"),
        (503, "2", ""),
        (504, "", r#"{"message": "timed out", "reason": "Timeout"}"#),
        (301, "", ""),
        (507, "", "null"),
    ] {
        for verb in [Get, Apply] {
            let api = MadeUpApi::new(move |_| {
                let mut answer = Response::builder().status(status);
                if !header.is_empty() {
                    answer = answer.header("retry-after", header);
                }
                answer.body(whole(body)).unwrap()
            });
            let fault = api
                .cluster
                .send(map(verb, "a").body(json!({})))
                .await
                .unwrap_err();
            assert_eq!(fault.status, Some(status));
            table += &fault_shown(&fault);
        }
    }
    expect![[r#"
        ResourceGeneric: get configmaps default/a: no (BadRequest) [400]
        ResourceMutation: apply configmaps default/a: no (BadRequest) [400]
        ApiServerUnavailable: get configmaps default/a: Unauthorized (Unauthorized) [401]
        ApiServerUnavailable: apply configmaps default/a: Unauthorized (Unauthorized) [401]
        ResourcePermission: get configmaps default/a: maps is forbidden (Forbidden) [403]
        ResourcePermission: apply configmaps default/a: maps is forbidden (Forbidden) [403]
        ResourcePermission: get configmaps default/a: it is being terminated (Forbidden) [403]
        ResourceMutation: apply configmaps default/a: it is being terminated (Forbidden) [403]
        UnsupportedResourceOperation: get configmaps default/a: 405 Method Not Allowed [405]
        UnsupportedResourceOperation: apply configmaps default/a: 405 Method Not Allowed [405]
        ResourceConflict: get configmaps default/a: modified (Conflict) [409]
        ResourceConflict: apply configmaps default/a: modified (Conflict) [409]
        ResourceGeneric: get configmaps default/a: 413 Payload Too Large [413]
        ResourceMutation: apply configmaps default/a: 413 Payload Too Large [413]
        ResourceGeneric: get configmaps default/a: is invalid (Invalid) [422]
        ResourceMutation: apply configmaps default/a: is invalid (Invalid) [422]
        ApiServerUnavailable: get configmaps default/a: slow down [429] [after 7s]
        ApiServerUnavailable: apply configmaps default/a: slow down [429] [after 7s]
        ApiServerUnavailable: get configmaps default/a: slow down [429] [after 3s]
        ApiServerUnavailable: apply configmaps default/a: slow down [429] [after 3s]
        ApiServerUnavailable: get configmaps default/a: slow down [429] [after 3s]
        ApiServerUnavailable: apply configmaps default/a: slow down [429] [after 3s]
        ApiServerUnavailable: get configmaps default/a: etcd (InternalError) [500]
        ResourceMutation: apply configmaps default/a: etcd (InternalError) [500]
        ApiServerUnavailable: get configmaps default/a: 502 Bad Gateway [502]
        ApiServerUnavailable: apply configmaps default/a: 502 Bad Gateway [502]
        ApiServerUnavailable: get configmaps default/a: 503 Service Unavailable [503] [after 2s]
        ApiServerUnavailable: apply configmaps default/a: 503 Service Unavailable [503] [after 2s]
        ApiServerUnavailable: get configmaps default/a: timed out (Timeout) [504]
        ApiServerUnavailable: apply configmaps default/a: timed out (Timeout) [504]
        ResourceGeneric: get configmaps default/a: 301 Moved Permanently [301]
        ResourceGeneric: apply configmaps default/a: 301 Moved Permanently [301]
        ResourceGeneric: get configmaps default/a: 507 Insufficient Storage [507]
        ResourceGeneric: apply configmaps default/a: 507 Insufficient Storage [507]
    "#]]
    .assert_eq(&table);
}

#[tokio::test]
async fn an_answer_that_breaks_off_or_is_no_object_is_told() {
    let broken = MadeUpApi::new(|_| {
        let frames = [
            Ok(Frame::data("{\"a\": ".into())),
            Err(std::io::Error::other("the connection was reset")),
        ];
        let body = StreamBody::new(futures::stream::iter(frames));
        Response::new(body.boxed_unsync())
    });
    broken
        .cluster
        .check(
            [map(Get, "a"), map(Apply, "a").body(json!({}))],
            expect![[r#"
                ApiServerUnavailable: get configmaps default/a: the answer broke off: ServiceError: the connection was reset
                ApiServerUnavailable: apply configmaps default/a: the answer broke off: ServiceError: the connection was reset
            "#]],
        )
        .await;
    for (answer, expected) in [
        (
            &b"hello"[..],
            expect![[r#"
                ResourceGeneric: the server's answer is not well-formed JSON: expected value at line 1 column 1
                ResourceGeneric: the list of configmaps cannot be read: expected value at line 1 column 1
            "#]],
        ),
        (
            b"",
            expect![[r#"
                ResourceGeneric: the server's answer is not well-formed JSON: EOF while parsing a value at line 1 column 0
                ResourceGeneric: the list of configmaps cannot be read: EOF while parsing a value at line 1 column 0
            "#]],
        ),
        (
            b"\"\xff\"",
            expect![[r#"
                ResourceGeneric: the server's answer cannot be read: it is not UTF-8
                ResourceGeneric: the list of configmaps cannot be read: it is not UTF-8
            "#]],
        ),
    ] {
        let api = MadeUpApi::new(move |_| Response::new(whole(answer)));
        api.cluster
            .check([map(Get, "a"), everywhere(map(List, ""))], expected)
            .await;
    }
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_an_outage() {
    let service = tower::service_fn(|_: Request<Body>| {
        let error =
            std::io::Error::new(std::io::ErrorKind::ConnectionRefused, "connection refused");
        std::future::ready(Err::<Response<MadeUp>, _>(error))
    });
    let cluster = Cluster::of(Client::new(service, "default"));
    cluster
        .check(
            [map(Get, "a"), everywhere(map(List, "")), map(Delete, "a")],
            expect![[r#"
                ApiServerUnavailable: get configmaps default/a: ServiceError: connection refused
                ApiServerUnavailable: list configmaps: ServiceError: connection refused
                ApiServerUnavailable: delete configmaps default/a: ServiceError: connection refused
            "#]],
        )
        .await;
    let fault = cluster.sink.probe().await.unwrap_err();
    expect![[r#"
        ApiServerUnavailable: get /version: ServiceError: connection refused
    "#]]
    .assert_eq(&fault_shown(&fault));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_in_time_is_an_outage() {
    let service = tower::service_fn(|_: Request<Body>| {
        std::future::pending::<Result<Response<MadeUp>, std::convert::Infallible>>()
    });
    let sink = KubernetesSink::new(&Client::new(service, "default").into());
    let mut said = String::new();
    for timeout in [None, Some(Duration::from_millis(1500))] {
        let scope = Scope {
            timeout,
            ..Scope::default()
        };
        let operation = Operation::Kubernetes(everywhere(map(List, "")));
        said += &fault_shown(&execute(&sink, &operation, &scope).await.unwrap_err());
    }
    said += &fault_shown(&sink.probe().await.unwrap_err());
    expect![[r#"
        ApiServerUnavailable: list configmaps: no answer within 30s
        ApiServerUnavailable: list configmaps: no answer within 1.5s
        ApiServerUnavailable: get /version: no answer
    "#]]
    .assert_eq(&said);
}

#[tokio::test]
async fn an_operation_for_another_sink_is_refused_and_a_probe_asks_for_the_version() {
    let cluster = Cluster::new().await;
    let operation = Operation::Http(HttpRequest {
        method: "GET".into(),
        url: "https://example.com".into(),
        headers: Vec::new(),
        body: None,
    });
    let fault = execute(&cluster.sink, &operation, &Scope::default())
        .await
        .unwrap_err();
    expect![[r#"
        UnsupportedResourceOperation: a request for the http sink came to the kubernetes sink
    "#]]
    .assert_eq(&fault_shown(&fault));
    cluster.sink.probe().await.unwrap();
}
