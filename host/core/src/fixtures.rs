//! What the tests of this crate are made from. Every field that a test does not set has a plain default.

use std::time::Duration;

use crate::backoff::RetryPolicy;
use crate::capability::Capabilities;
use crate::configurator::{Configurator, Deletion, DeletionBy, Phase, Watch};
use crate::content::ContentDigest;
use crate::document::Document;
use crate::fault::{Fault, FaultKind};
use crate::handler::{CallLimits, WatchEvent};
use crate::plan::Failure;
use crate::projection::Projection;
use crate::request::ObjectRef;
use crate::run::Member;
use crate::time::Timestamp;

/// A Configurator of Pods with the phases `root` and `write`, and the deletion phase `cleanup`.
pub(crate) fn configurator() -> Configurator {
    let phase = |name: &str| Phase { name: name.into(), handler: name.into() };
    Configurator {
        name: "c".into(),
        uid: "c-uid".into(),
        generation: 1,
        suspend: false,
        watch: Watch {
            group: String::new(),
            version: "v1".into(),
            kind: "Pod".into(),
            namespaces: Vec::new(),
            label_selector: String::new(),
            field_selector: String::new(),
            events: vec![WatchEvent::Added, WatchEvent::Modified],
            resync_period: None,
            fields: Projection::default(),
        },
        batch: None,
        parameters: Document::empty_object(),
        phases: vec![phase("root"), phase("write")],
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
    ObjectRef { namespace: "ns".into(), name: name.into() }
}

pub(crate) fn content(number: u64) -> ContentDigest {
    ContentDigest::of(&serde_json::json!({ "number": number }), None, "c")
}

pub(crate) fn member(name: &str) -> Member {
    Member {
        key: key(name),
        uid: format!("{name}-uid"),
        object: Document::empty_object(),
        event: WatchEvent::Added,
        content: content(0),
    }
}

pub(crate) fn failure(kind: FaultKind) -> Failure {
    Failure { request_name: "r".into(), fault: Fault::new(kind, "it failed"), reaction: kind.reaction() }
}

pub(crate) fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}
