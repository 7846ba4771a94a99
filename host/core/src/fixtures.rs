//! What the tests of this crate are made from. Every field that a test does not set has a plain default.

use std::time::Duration;

use crate::backoff::RetryPolicy;
use crate::capability::Capabilities;
use crate::configurator::{Configurator, Deletion, DeletionBy, Phase, Watch};
use crate::content::ContentDigest;
use crate::document::Document;
use crate::fault::{Fault, FaultKind};
use crate::handler::{CallLimits, HandlerOutput, WatchEvent};
use crate::partition::Partition;
use crate::plan::Failure;
use crate::projection::Projection;
use crate::request::{
    ConfigBasic, ConfigOperation, ConfigRequest, ConfigVerb, HttpRequest, KubernetesRequest,
    KubernetesVerb, ObjectRef, Operation, Request, Requests, SecretRequest, SecretVerb,
};
use crate::result::RequestResult;
use crate::run::Member;
use crate::time::Timestamp;

/// The key of the Configurator.
pub(crate) fn configurator_key() -> ObjectRef {
    ObjectRef::cluster_scoped("c")
}

/// A Configurator of Pods with the phases `root` and `write`, and the deletion phase `cleanup`.
pub(crate) fn configurator() -> Configurator {
    let phase = |name: &str| Phase {
        name: name.into(),
        handler: name.into(),
    };
    Configurator {
        key: configurator_key(),
        partition: Partition::default(),
        service_account: None,
        uid: "c-uid".into(),
        generation: 1,
        suspend: false,
        record: None,
        watch: Watch {
            group: String::new(),
            version: "v1".into(),
            kind: "Pod".into(),
            namespaces: Vec::new(),
            exclude_namespaces: Vec::new(),
            namespace_selector: String::new(),
            label_selector: String::new(),
            field_selector: String::new(),
            events: vec![WatchEvent::Added, WatchEvent::Modified],
            resync_period: None,
            fields: Projection::default(),
        },
        batch: None,
        secrets: Vec::new(),
        parameters: Document::empty_object(),
        phases: vec![phase("root"), phase("write")],
        machine: None,
        sets: None,
        deletion: Deletion {
            by: DeletionBy::Ledger,
            phases: vec![phase("cleanup")],
            timeout: Duration::from_secs(600),
        },
        capabilities: Capabilities::everything(),
        limits: CallLimits::default(),
        max_requests: 1000,
        concurrency: 2,
        retry: RetryPolicy::default(),
    }
}

pub(crate) fn key(name: &str) -> ObjectRef {
    ObjectRef {
        namespace: "ns".into(),
        name: name.into(),
    }
}

pub(crate) fn content(number: u64) -> ContentDigest {
    ContentDigest::of(
        &serde_json::json!({ "number": number }),
        None,
        &configurator_key(),
    )
}

pub(crate) fn member(name: &str) -> Member {
    Member {
        key: key(name),
        uid: format!("{name}-uid"),
        object: Document::empty_object(),
        event: WatchEvent::Added,
        content: content(0),
        occasion: None,
    }
}

pub(crate) fn failure(kind: FaultKind) -> Failure {
    Failure::of_request("r", Fault::new(kind, "it failed"))
}

pub(crate) fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

pub(crate) fn document(text: &str) -> Document {
    Document::parse(text).expect("a test writes well-formed JSON")
}

/// A request for the ConfigMap `name` in the namespace `ns`, with a body where the verb needs one.
pub(crate) fn kubernetes(verb: KubernetesVerb, name: &str) -> KubernetesRequest {
    let has_body = verb.is_mutating() && verb != KubernetesVerb::Delete;
    KubernetesRequest {
        kind: "ConfigMap".into(),
        namespace: "ns".into(),
        name: if verb == KubernetesVerb::List {
            String::new()
        } else {
            name.into()
        },
        body: has_body.then(Document::empty_object),
        ..KubernetesRequest::new(verb, "", "v1", "configmaps")
    }
}

/// Reads the ConfigMap of the request's name.
pub(crate) fn get(name: &str) -> Request {
    Request::new(
        name,
        Operation::Kubernetes(kubernetes(KubernetesVerb::Get, name)),
    )
}

/// Applies the ConfigMap of the request's name.
pub(crate) fn apply(name: &str) -> Request {
    Request::new(
        name,
        Operation::Kubernetes(kubernetes(KubernetesVerb::Apply, name)),
    )
}

/// Puts `value` under the plain key of the request's name.
pub(crate) fn put(name: &str, value: &str) -> Request {
    let operation = ConfigOperation::Basic(ConfigBasic {
        verb: ConfigVerb::Update,
        key: name.into(),
        value: Some(value.into()),
    });
    let config = ConfigRequest {
        is_transaction: false,
        operations: vec![operation],
        partition: None,
    };
    Request::new(name, Operation::Config(config))
}

/// Does `verb` with the secret of the request's name.
pub(crate) fn secret(verb: SecretVerb, name: &str) -> Request {
    Request::new(
        name,
        Operation::Secret(SecretRequest {
            name: name.into(),
            verb,
            value: None,
            version: None,
            partition: None,
        }),
    )
}

/// Posts to the path of the request's name.
pub(crate) fn post(name: &str) -> Request {
    let http = HttpRequest {
        method: "POST".into(),
        url: format!("https://hooks.example.com/{name}"),
        headers: Vec::new(),
        body: None,
    };
    Request::new(name, Operation::Http(http))
}

/// An output with these requests.
pub(crate) fn asks(resource_requests: impl Into<Vec<Request>>) -> HandlerOutput {
    HandlerOutput {
        requests: Requests {
            resource_requests: resource_requests.into(),
            ..Requests::default()
        },
        ..HandlerOutput::default()
    }
}

/// What a sink that did the request answered: one document that says so.
pub(crate) fn answered(request: &Request) -> RequestResult {
    RequestResult {
        request_name: request.name.clone(),
        sink: request.operation.sink(),
        is_declarative: request.is_declarative,
        query_objects: vec![document(&format!("{{\"of\":{:?}}}", request.name))],
        created: at(0),
        finished: Some(at(0)),
        error: None,
        http_response: None,
    }
}
