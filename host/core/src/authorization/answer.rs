//! What a handler sees of an answer.

use serde::{Deserialize, Serialize};

use super::{AuthorizedOperation, Readable};
use crate::document::Document;
use crate::result::Answer;

impl AuthorizedOperation {
    /// The answer without what no rule lets the handler read: of an object its type, name, namespace, uid and resource version; of a
    /// secret its name and version; of an entry of the config store its key and uid.
    #[must_use]
    pub fn visible(&self, answer: Answer) -> Answer {
        let reduce = |at: usize, object: Document| match &self.readable {
            Readable::All => object,
            Readable::Each(each) if each.get(at).copied().unwrap_or_default() => object,
            Readable::Identity | Readable::Each(_) => identity_of(&object),
        };
        let objects = answer.query_objects.into_iter().enumerate();
        Answer {
            query_objects: objects.map(|(at, object)| reduce(at, object)).collect(),
            ..answer
        }
    }
}

/// The fields of an answer that say which object it is and which version of it.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Identity {
    #[serde(skip_serializing_if = "Option::is_none")]
    api_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Metadata>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_version: Option<String>,
}

/// An answer of another shape has nothing to show.
fn identity_of(object: &Document) -> Document {
    let identity = object.read::<Identity>().ok();
    identity
        .and_then(|identity| Document::of(&identity).ok())
        .unwrap_or_else(Document::empty_object)
}
