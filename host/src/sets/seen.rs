//! What the host keeps of a member that it has read.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use configurator_core::desired::marks;
use configurator_core::field;
use serde_json::Value;

use crate::objects::{hash, text};

/// The facts that the host keeps of the object that it read last.
pub(super) struct Seen {
    pub(super) version: Option<u64>,
    pub(super) generation: Option<u64>,
    /// The digest that the object carries.
    pub(super) digest: Option<String>,
    /// The hash of the object without its status and versions, at the time when it last had what its entry describes.
    pub(super) settled: Option<u64>,
    /// The hash of its status.
    pub(super) status: u64,
    /// The hash of the status that it had when its generation changed last. `None`: this host has not seen that.
    pub(super) status_before: Option<u64>,
}

/// Why a member was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadFor {
    /// It was asked for, or a watch has shown it.
    Look,
    /// It is the answer to a write of its entry.
    Write,
}

impl Seen {
    /// The facts about an object. `before` are those about the object that was read last.
    pub(super) fn of(object: &Value, before: Option<&Self>, read_for: ReadFor) -> Self {
        let generation = generation(object);
        let status = hash(object.get("status"));
        Self {
            version: text(object, "/metadata/resourceVersion").parse().ok(),
            generation,
            digest: marks::digest_of(object).map(str::to_owned),
            settled: before.and_then(|before| before.settled),
            status,
            status_before: status_before(before, generation, status, read_for),
        }
    }

    /// Whether the status is from before the last change of the object's generation.
    pub(super) fn has_older_status(&self) -> bool {
        self.status_before == Some(self.status)
    }
}

/// Whether the version of an object is the one that was read last, or an older one. Versions that are no numbers say nothing.
pub(super) fn is_known(read: Option<u64>, shown: Option<u64>) -> bool {
    matches!((read, shown), (Some(read), Some(shown)) if shown <= read)
}

/// The hash of everything but the status and the versions.
pub(super) fn content_hash(object: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    let fields = object.as_object().into_iter().flatten();
    for (name, value) in fields.filter(|(name, _)| *name != "status") {
        name.hash(&mut hasher);
        match value {
            Value::Object(metadata) if name == "metadata" => {
                let versions = ["resourceVersion", "generation", "managedFields"];
                for (name, value) in metadata {
                    if !versions.contains(&&**name) {
                        name.hash(&mut hasher);
                        value.hash(&mut hasher);
                    }
                }
            }
            value => value.hash(&mut hasher),
        }
    }
    hasher.finish()
}

/// The generation of an object. `None`: it has none.
pub(super) fn generation(object: &Value) -> Option<u64> {
    field::at(object, "/metadata/generation")?.as_u64()
}

/// Returns the hash of the status that an object had when its generation changed last, which only a write or the change itself tells.
fn status_before(
    before: Option<&Seen>,
    generation: Option<u64>,
    status: u64,
    read_for: ReadFor,
) -> Option<u64> {
    match (before, read_for) {
        (Some(before), _) if before.generation == generation => before.status_before,
        // Its controller may have answered the change already.
        (Some(before), ReadFor::Look) => Some(before.status),
        (None, ReadFor::Look) => None,
        (_, ReadFor::Write) => Some(status),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_older_than_the_last_change_of_the_generation() {
        let seen = |generation, status, status_before| Seen {
            version: None,
            generation: Some(generation),
            digest: None,
            settled: None,
            status,
            status_before,
        };
        let check = |before: Option<&Seen>, generation, read_for, expected| {
            assert_eq!(
                status_before(before, Some(generation), 7, read_for),
                expected
            );
        };
        check(None, 1, ReadFor::Look, None);
        check(None, 1, ReadFor::Write, Some(7));
        // A watch has shown the change before the write was answered, or a label has changed only.
        check(Some(&seen(2, 7, Some(6))), 2, ReadFor::Write, Some(6));
        check(Some(&seen(2, 7, None)), 2, ReadFor::Write, None);
        check(Some(&seen(1, 7, Some(5))), 2, ReadFor::Write, Some(7));
        check(Some(&seen(1, 6, Some(5))), 2, ReadFor::Look, Some(6));
    }
}
