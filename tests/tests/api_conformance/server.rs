//! One of the two servers, and raw requests to it.

use std::time::Duration;

use futures::StreamExt as _;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde_json::Value;

/// How long one answer, or one awaited state, may take.
pub const PATIENCE: Duration = Duration::from_secs(40);

/// A request as it is sent.
#[derive(Debug, Clone)]
pub struct Asked {
    pub verb: &'static str,
    pub path: String,
    pub media: String,
    pub accept: String,
    pub agent: String,
    pub body: Vec<u8>,
}

/// What was answered.
#[derive(Debug, Clone)]
pub struct Answer {
    pub code: u16,
    pub warnings: Vec<String>,
    /// JSON, or a text.
    pub body: Value,
}

async fn send(client: &Client, asked: &Asked) -> Response<Body> {
    let mut request = Request::builder()
        .method(asked.verb)
        .uri(&asked.path)
        .header("user-agent", &asked.agent)
        .header("accept", &asked.accept);
    if !asked.body.is_empty() {
        request = request.header("content-type", &asked.media);
    }
    let request = request.body(Body::from(asked.body.clone())).unwrap();
    tokio::time::timeout(PATIENCE, client.send(request))
        .await
        .unwrap_or_else(|_| panic!("{} {}: no answer", asked.verb, asked.path))
        .unwrap_or_else(|error| panic!("{} {}: {error}", asked.verb, asked.path))
}

fn warnings(response: &Response<Body>) -> Vec<String> {
    let all = response.headers().get_all("warning").iter();
    all.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        .collect()
}

fn document(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(bytes).into_owned()))
}

/// Sends a request and reads the whole answer.
pub async fn ask(client: &Client, asked: &Asked) -> Answer {
    let response = send(client, asked).await;
    let (code, warnings) = (response.status().as_u16(), warnings(&response));
    let body = tokio::time::timeout(PATIENCE, response.into_body().collect())
        .await
        .unwrap_or_else(|_| panic!("{} {}: the answer does not end", asked.verb, asked.path))
        .unwrap()
        .to_bytes();
    Answer {
        code,
        warnings,
        body: document(&body),
    }
}

/// A watch that is open, or was refused.
pub struct Watch {
    pub code: u16,
    pub warnings: Vec<String>,
    lines: futures::stream::BoxStream<'static, Vec<u8>>,
    rest: Vec<u8>,
}

impl Watch {
    pub async fn open(client: &Client, asked: &Asked) -> Self {
        let response = send(client, asked).await;
        Self {
            code: response.status().as_u16(),
            warnings: warnings(&response),
            lines: response
                .into_body()
                .into_data_stream()
                .filter_map(|part| async { part.ok().map(|bytes| bytes.to_vec()) })
                .boxed(),
            rest: Vec::new(),
        }
    }

    /// The next `count` events, or all until the watch ends. Bookmarks count where they end initial events: of others it
    /// is the server's to say when they come.
    pub async fn events(&mut self, count: Option<usize>) -> Vec<Value> {
        let mut events = Vec::new();
        let read = async {
            while count != Some(events.len()) {
                if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = self.rest.drain(..=end).collect();
                    let event = document(&line);
                    let annotations = "/object/metadata/annotations";
                    if event["type"] != "BOOKMARK" || event.pointer(annotations).is_some() {
                        events.push(event);
                    }
                    continue;
                }
                match self.lines.next().await {
                    Some(part) => self.rest.extend(part),
                    None => {
                        if !self.rest.is_empty() {
                            events.push(document(&self.rest));
                        }
                        break;
                    }
                }
            }
        };
        if tokio::time::timeout(PATIENCE, read).await.is_err() {
            events.push(Value::from("and no further event came"));
        }
        events
    }
}
