//! What the sinks answered.

use crate::document::Document;
use crate::fault::Fault;
use crate::request::SinkName;
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// What an HTTP endpoint answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpResponse {
    /// The status.
    pub status: u16,
    /// Lower-case names and values.
    pub headers: Vec<(String, String)>,
    /// The body.
    #[serde(with = "crate::text_or_bytes")]
    pub body: Vec<u8>,
}

/// What became of one request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestResult {
    /// The request that this answers.
    pub request_name: String,
    /// The sink that executed it.
    pub sink: SinkName,
    /// As in the request.
    pub is_declarative: bool,
    /// What the server returned: one document for a `get` or a write, one an item for a `list`.
    pub query_objects: Vec<Document>,
    /// When the host created the request.
    pub created: Timestamp,
    /// When it was finished; `None` for a declarative one that is under way.
    pub finished: Option<Timestamp>,
    /// Set when it failed.
    pub error: Option<Fault>,
    /// For `http`.
    pub http_response: Option<HttpResponse>,
}

/// The value under one key of the next handler's results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ResultEntry {
    /// Of a request without `group-by`.
    One(RequestResult),
    /// Of all requests with this `group-by` key, in request order.
    Group(Vec<RequestResult>),
}

/// What a sink answers for one request that it executed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// What the server returned.
    pub query_objects: Vec<Document>,
    /// For `http`.
    pub http_response: Option<HttpResponse>,
    /// Whether something changed at the server, as far as the sink can tell.
    pub changed: bool,
}

impl Answer {
    /// Returns the bytes of what the server returned.
    #[must_use]
    pub fn size(&self) -> u64 {
        size(&self.query_objects, self.http_response.as_ref())
    }
}

impl RequestResult {
    /// Returns the bytes of what the server returned.
    #[must_use]
    pub fn size(&self) -> u64 {
        size(&self.query_objects, self.http_response.as_ref())
    }
}

impl ResultEntry {
    /// Returns the bytes of what the servers returned.
    #[must_use]
    pub fn size(&self) -> u64 {
        match self {
            Self::One(result) => result.size(),
            Self::Group(results) => results.iter().map(RequestResult::size).sum(),
        }
    }
}

fn size(documents: &[Document], response: Option<&HttpResponse>) -> u64 {
    let documents: usize = documents.iter().map(Document::size).sum();
    let response = response.map_or(0, |response| {
        let headers = response.headers.iter();
        let headers: usize = headers.map(|(name, value)| name.len() + value.len()).sum();
        headers + response.body.len()
    });
    (documents + response) as u64
}
