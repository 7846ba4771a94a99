//! Events: two groups serve the same objects in different words, and only so many are kept.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use configurator_store::{Store, StoreError};
use serde_json::Value;

use crate::object;
use crate::resource::Resource;
use crate::{keys, object::stored_revision};

/// Where events are stored, in the words of the core group.
pub(crate) const STORAGE: &str = "/events";

/// Whether the resource shows its objects in other words than they are stored in.
pub(crate) fn is_converted(resource: &Resource) -> bool {
    resource.group == "events.k8s.io"
}

/// The words of the core group, and those of `events.k8s.io`.
const WORDS: [(&str, &str); 6] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

/// The core group calls these by a shorter name.
const REPORTING: (&str, &str) = ("reportingComponent", "reportingController");

pub(crate) fn to_core_group(event: Value) -> Value {
    rename(event, "v1", |core, other| (other, core))
}

pub(crate) fn to_events_group(event: Value) -> Value {
    let mut event = rename(event, "events.k8s.io/v1", |core, other| (core, other));
    // Only the core group writes them where there is none.
    for name in ["reportingController", "reportingInstance"] {
        if event.get(name).and_then(Value::as_str) == Some("") {
            object::set_field(&mut event, name, None);
        }
    }
    event
}

fn rename(
    mut event: Value,
    api_version: &str,
    direction: impl Fn(&'static str, &'static str) -> (&'static str, &'static str),
) -> Value {
    if let Value::Object(fields) = &mut event {
        for (core, other) in WORDS.into_iter().chain([REPORTING]) {
            let (from, to) = direction(core, other);
            if let Some(value) = fields.remove(from) {
                fields.insert(to.to_owned(), value);
            }
        }
    }
    object::set_field(&mut event, "apiVersion", Some(Value::from(api_version)));
    event
}

/// Which events there are, in the order in which they came.
pub(crate) struct EventLimit {
    names: Mutex<VecDeque<(String, String)>>,
    limit: usize,
}

impl EventLimit {
    pub(crate) fn read(store: &Store, limit: usize) -> Result<Self, StoreError> {
        let mut events = Vec::new();
        store.read(|state| {
            state.scan(
                keys::resource_prefix(STORAGE).as_bytes(),
                None,
                &mut |key, value| {
                    if let Some((namespace, name)) = keys::namespace_and_name(key) {
                        let revision: u64 = stored_revision(value)
                            .and_then(|revision| revision.parse().ok())
                            .unwrap_or(0);
                        events.push((revision, namespace.to_owned(), name.to_owned()));
                    }
                    ControlFlow::Continue(())
                },
            )
        })??;
        events.sort_unstable();
        let names = events
            .into_iter()
            .map(|(_, namespace, name)| (namespace, name))
            .collect();
        Ok(Self {
            names: Mutex::new(names),
            limit,
        })
    }

    /// Notes a new event. True if there are too many now.
    pub(crate) fn add(&self, name: &str, namespace: &str) -> bool {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.push_back((namespace.to_owned(), name.to_owned()));
        names.len() > self.limit
    }

    /// Takes the oldest out, down to the limit.
    pub(crate) fn excess(&self) -> Vec<(String, String)> {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let excess = names.len().saturating_sub(self.limit);
        names.drain(..excess).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn events_keep_their_content_in_both_words() {
        let event = json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "a"}, "regarding": {"kind": "Pod"}, "note": "n",
            "reportingController": "c", "eventTime": "t", "action": "x", "deprecatedCount": 3,
        });
        let core = to_core_group(event.clone());
        assert_eq!(core["involvedObject"], json!({"kind": "Pod"}));
        assert_eq!(core["message"], json!("n"));
        assert_eq!(core["reportingComponent"], json!("c"));
        assert_eq!(to_events_group(core), event);
    }
}
