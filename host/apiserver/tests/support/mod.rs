//! A server in memory, and requests as any HTTP client would send them.
#![allow(dead_code, reason = "each test uses a part")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use bytes::Bytes;
use configurator_apiserver::{ApiBody, ApiServer, ApiServerOptions};
use configurator_store::Store;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use jiff::Timestamp;
use serde_json::{Value, json};
use tower::ServiceExt;

/// A server whose clock goes one second ahead at each look.
pub struct Api {
    pub server: ApiServer,
}

/// An answer: its code, its warnings, its document.
#[derive(Debug)]
pub struct Answer {
    pub code: u16,
    pub warnings: Vec<String>,
    pub body: Value,
}

impl Answer {
    #[track_caller]
    pub fn ok(self) -> Value {
        assert!(self.code < 300, "{} {}", self.code, self.body);
        self.body
    }

    #[track_caller]
    pub fn refused(self, code: u16) -> String {
        assert_eq!(self.code, code, "{}", self.body);
        assert_eq!(self.body["kind"], "Status");
        format!(
            "{}: {}",
            self.body["reason"].as_str().unwrap_or_default(),
            self.body["message"].as_str().unwrap_or_default()
        )
    }
}

pub fn options() -> ApiServerOptions {
    let seconds = Arc::new(AtomicI64::new(1_700_000_000));
    ApiServerOptions::new(move || {
        Timestamp::from_second(seconds.fetch_add(1, Ordering::Relaxed)).unwrap()
    })
}

impl Api {
    pub async fn new() -> Self {
        Self::on(Store::memory()).await
    }

    pub async fn on(store: Store) -> Self {
        Self {
            server: ApiServer::open(store, options()).await.unwrap(),
        }
    }

    pub fn client(&self) -> kube::Client {
        kube::Client::new(self.server.clone(), "default")
    }

    pub async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Response<ApiBody> {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.server
            .clone()
            .oneshot(request.body(Full::new(body.into())).unwrap())
            .await
            .unwrap()
    }

    pub async fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        let response = self.send(method, path, headers, body).await;
        let code = response.status().as_u16();
        let warnings = response
            .headers()
            .get_all("warning")
            .iter()
            .map(|value| value.to_str().unwrap().to_owned())
            .collect();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let body = serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| Value::from(String::from_utf8_lossy(&bytes)));
        Answer {
            code,
            warnings,
            body,
        }
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.request("GET", path, &[], "").await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.request(
            "POST",
            path,
            &[("content-type", "application/json")],
            body.to_string(),
        )
        .await
    }

    pub async fn put(&self, path: &str, body: Value) -> Answer {
        self.request(
            "PUT",
            path,
            &[("content-type", "application/json")],
            body.to_string(),
        )
        .await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.request("DELETE", path, &[], "").await
    }

    pub async fn patch(&self, kind: &str, path: &str, body: Value) -> Answer {
        let media = match kind {
            "apply" => "application/apply-patch+yaml".to_owned(),
            "strategic" => "application/strategic-merge-patch+json".to_owned(),
            other => format!("application/{other}-patch+json"),
        };
        self.request("PATCH", path, &[("content-type", &media)], body.to_string())
            .await
    }

    /// The lines of a watch, until it ends or `count` have come.
    pub async fn watch(&self, path: &str, count: usize) -> Vec<Value> {
        let response = self.send("GET", path, &[], "").await;
        assert_eq!(response.status(), 200);
        Lines::of(response).take(count).await
    }

    /// Waits until an object is gone. The collector works by itself; each look lets it.
    pub async fn gone(&self, path: &str) {
        for _ in 0..10_000 {
            if self.get(path).await.code == 404 {
                return;
            }
            tokio::task::yield_now().await;
        }
        panic!("{path} is still there");
    }
}

/// The lines of a watch that goes on.
pub struct Lines {
    body: ApiBody,
    rest: Vec<u8>,
}

impl Lines {
    pub fn of(response: Response<ApiBody>) -> Self {
        Self {
            body: response.into_body(),
            rest: Vec::new(),
        }
    }

    pub async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.rest.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let frame = self.body.frame().await?.unwrap();
            self.rest.extend_from_slice(&frame.into_data().unwrap());
        }
    }

    pub async fn take(mut self, count: usize) -> Vec<Value> {
        let mut lines = Vec::new();
        while lines.len() < count {
            let Some(line) = self.next().await else { break };
            lines.push(line);
        }
        lines
    }
}

/// Types and names of watch events, one a line.
pub fn shown(events: &[Value]) -> String {
    let line = |event: &Value| {
        format!(
            "{} {}",
            event["type"].as_str().unwrap(),
            event["object"]["metadata"]["name"].as_str().unwrap_or("-")
        )
    };
    events.iter().map(line).collect::<Vec<_>>().join("\n")
}

pub fn config_map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

pub fn pod(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}},
           "spec": {"containers": [{"name": "main", "image": "nginx"}]}})
}
