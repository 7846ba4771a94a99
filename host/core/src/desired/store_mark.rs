//! The marks of members in the config store and the secret store. A mark is a key of the config store, in the partition of the member. No request
//! can name it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::marks::{DIGEST, NONCE, OBJECT_SET, PART_OF, PRUNING};
use crate::field;
use crate::graph::member::MemberKey;

/// The prefix of the keys of marks, within a partition.
pub const PREFIX: &str = "members/";

/// The mark of one member. It claims the key or the name of the member for a set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StoreMark {
    /// The id of the set.
    pub set: String,
    /// The namespace and name of the set's `ObjectSet`, for people.
    pub object_set: String,
    /// The text that proves which record of the inventory the member has.
    pub nonce: String,
    /// The digest of the entry that was applied last.
    pub digest: String,
    /// The keyed digest of the value that the host has written last.
    pub value: String,
    /// The version of the set that is about to prune the member.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pruning: Option<u64>,
}

/// Returns the key of a member's mark within the partition of the member. `None`: the member is a Kubernetes object, which carries its marks.
#[must_use]
pub fn key_of(member: &MemberKey) -> Option<String> {
    match member {
        MemberKey::Kubernetes { .. } => None,
        MemberKey::Config { key, .. } => Some(format!("{PREFIX}config/{key}")),
        MemberKey::Secret { name, .. } => Some(format!("{PREFIX}secret/{name}")),
    }
}

/// Returns a member of a store in the form of an object: `fields`, and the mark as labels and annotations. The uid is the nonce of the mark.
/// `is_changed`: the member does not have the value that the host has written last.
#[must_use]
pub fn object_of(
    mark: Option<&StoreMark>,
    mut fields: Map<String, Value>,
    is_changed: bool,
) -> Value {
    let mut metadata =
        Map::from_iter([("uid".to_owned(), json!(mark.map_or("", |mark| &mark.nonce)))]);
    if let Some(mark) = mark {
        let texts = [
            (OBJECT_SET, mark.object_set.clone()),
            (NONCE, mark.nonce.clone()),
            (DIGEST, mark.digest.clone()),
        ];
        let pruning = mark.pruning.map(|version| (PRUNING, version.to_string()));
        let texts = texts.into_iter().chain(pruning);
        let annotations = texts.map(|(name, text)| (name.to_owned(), Value::String(text)));
        metadata.insert("annotations".to_owned(), annotations.collect());
        metadata.insert("labels".to_owned(), json!({PART_OF: mark.set}));
    }
    if is_changed {
        metadata.insert("changed".to_owned(), json!(true));
    }
    fields.insert("metadata".to_owned(), Value::Object(metadata));
    Value::Object(fields)
}

/// Whether a member of a store does not have the value that the host has written last.
#[must_use]
pub fn is_changed(object: &Value) -> bool {
    field::at(object, "/metadata/changed").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desired::marks::{self, SetId};
    use crate::graph::observation::MemberOwner;
    use crate::request::ObjectRef;

    #[test]
    fn a_mark_says_the_same_as_the_marks_of_an_object() {
        let object_set = ObjectRef {
            namespace: "shop".to_owned(),
            name: "web-1".to_owned(),
        };
        let set = SetId::of(&object_set);
        let mark = StoreMark {
            set: set.to_string(),
            object_set: object_set.to_string(),
            nonce: "n".to_owned(),
            digest: "d".to_owned(),
            value: "v".to_owned(),
            pruning: Some(3),
        };
        let fields = || Map::from_iter([("key".to_owned(), json!("basic/a"))]);
        let object = object_of(Some(&mark), fields(), false);
        let ours = MemberOwner::ThisSet {
            nonce: "n".to_owned(),
        };
        assert_eq!(set.owner_of(&object), ours);
        assert_eq!(marks::digest_of(&object), Some("d"));
        assert!(marks::is_pruning(&object) && !is_changed(&object));
        let other = SetId::of(&ObjectRef::default());
        let owner = MemberOwner::Other("the ObjectSet shop/web-1".to_owned());
        assert_eq!(other.owner_of(&object), owner);
        let unmarked = object_of(None, fields(), true);
        assert_eq!(set.owner_of(&unmarked), MemberOwner::Unowned);
        assert!(is_changed(&unmarked));
    }
}
