//! A Kubernetes API that writes down what reaches it.

use std::sync::{Arc, Mutex};

use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use kube::Client;
use kube::client::Body;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use super::model::SERVED;

/// The uid of every object that it has.
pub const UID: &str = "u-1";
/// What every object holds.
pub const CONTENT: &str = "c0ntent";

/// One request as it came.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrived {
    pub method: String,
    /// Decoded as a whole, as servers do that split it afterwards.
    pub path: String,
    pub query: Vec<(String, String)>,
    pub media_type: String,
    /// Whom it is sent as; empty for the host.
    pub user: String,
    pub body: Value,
}

/// What has reached the server since it was last asked.
#[derive(Clone, Default)]
pub struct Server {
    arrived: Arc<Mutex<Vec<Arrived>>>,
    exists: Arc<Mutex<bool>>,
}

impl Server {
    /// A client of it.
    pub fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move { Ok::<_, tower::BoxError>(server.answer(request).await) }
        });
        Client::new(service, "default")
    }

    /// Whether it has the objects that it is asked for, from now on.
    pub fn set_exists(&self, exists: bool) {
        *self.exists.lock().unwrap() = exists;
    }

    /// What has come, without discovery.
    pub fn take(&self) -> Vec<Arrived> {
        std::mem::take(&mut *self.arrived.lock().unwrap())
    }

    async fn answer(&self, request: Request<Body>) -> Response<Full<bytes::Bytes>> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let decoded = |text: &str| percent_decode_str(text).decode_utf8().unwrap().into_owned();
        let path = decoded(parts.uri.path());
        let query = parts
            .uri
            .query()
            .unwrap_or_default()
            .split('&')
            .filter(|it| !it.is_empty());
        let query = query.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap();
            (decoded(name), decoded(value))
        });
        let header = |name: &str| {
            let value = parts.headers.get(name);
            value
                .map(|it| it.to_str().unwrap().to_owned())
                .unwrap_or_default()
        };
        let arrived = Arrived {
            method: parts.method.to_string(),
            user: header("impersonate-user"),
            query: query.collect(),
            media_type: header("content-type"),
            body: serde_json::from_slice(&body).unwrap_or(Value::Null),
            path,
        };
        let segments: Vec<&str> = arrived.path.trim_matches('/').split('/').collect();
        let is_discovery = match segments.first() {
            Some(&"api") => segments.len() == 2,
            _ => segments.len() == 3,
        };
        let (status, answer) = match (arrived.method.as_str(), is_discovery) {
            ("GET", true) => (200, discovery()),
            (method, _) => self.object(method, &arrived),
        };
        if !is_discovery {
            self.arrived.lock().unwrap().push(arrived);
        }
        Response::builder()
            .status(status)
            .body(Full::new(answer.to_string().into()))
            .unwrap()
    }

    fn object(&self, method: &str, arrived: &Arrived) -> (u16, Value) {
        let exists = *self.exists.lock().unwrap();
        let object = json!({
            "apiVersion": "v1", "kind": "Thing", "data": {"k": CONTENT},
            "metadata": {"name": "n", "uid": UID, "resourceVersion": "9", "labels": {"l": CONTENT}},
        });
        let status = |code: u16, reason: &str| {
            let message = format!("the object holds {CONTENT}");
            (
                code,
                json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message}),
            )
        };
        let is_list = arrived.query.iter().any(|(name, _)| name == "limit");
        match (method, exists) {
            ("GET", _) if is_list => (200, json!({"kind": "ThingList", "items": [object]})),
            ("GET", false) => status(404, "NotFound"),
            ("POST", true) => status(409, "AlreadyExists"),
            ("PATCH" | "PUT", false) => status(422, "Invalid"),
            ("DELETE", false) => status(409, "Conflict"),
            _ => (200, object),
        }
    }
}

fn discovery() -> Value {
    let resources = ["configmaps", "secrets", "namespaces", "pods", "A", "-"];
    let names = resources
        .iter()
        .flat_map(|resource| SERVED.map(|subresource| format!("{resource}/{subresource}")));
    let resources: Vec<Value> = names.map(|name| json!({"name": name})).collect();
    json!({"kind": "APIResourceList", "resources": resources})
}
