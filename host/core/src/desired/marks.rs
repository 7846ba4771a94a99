//! The marks that the host puts on Kubernetes objects which are members of a set.

use std::fmt;

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::field;
use crate::graph::observation::MemberOwner;
use crate::request::ObjectRef;

/// The label with the id of the set. `kubectl apply --applyset` uses the same label, and leaves members of the sets of others alone.
pub const PART_OF: &str = "applyset.kubernetes.io/part-of";
/// The label with the uid of the Configurator, which its watches select.
pub const CONFIGURATOR: &str = "configurator.dev/configurator";
/// The annotation with the namespace and name of the set's `ObjectSet`, for people.
pub const OBJECT_SET: &str = "configurator.dev/object-set";
/// The annotation with the text that proves which record of the inventory the member has.
pub const NONCE: &str = "configurator.dev/nonce";
/// The annotation with the digest of the entry that was applied last.
pub const DIGEST: &str = "configurator.dev/digest";
/// The annotation that is put on members before they are pruned.
pub const PRUNING: &str = "configurator.dev/pruning";

/// The annotation of an owner that suspends its set: with the value `true`, the host neither writes nor deletes members.
pub const SUSPEND: &str = "configurator.dev/suspend-set";

/// The annotation of an owner that skips its `pre-terminate`: with the value `true`, the host deletes the members without sending these
/// requests.
pub const SKIP_PRE_TERMINATE: &str = "configurator.dev/skip-pre-terminate";

/// The annotation of an owner that allows one change to delete more members than `maxPrunePercent` says. Its value names the change, as the
/// status of the set has it.
pub const CONFIRM_PRUNE: &str = "configurator.dev/confirm-prune";

/// The annotation of an owner that gives up its set: the host deletes the inventory, and leaves the members alone. Its value is the reason.
pub const ABANDON: &str = "configurator.dev/abandon-set";

/// Labels and annotations that entries may not have.
pub const RESERVED: [&str; 6] = [PART_OF, CONFIGURATOR, OBJECT_SET, NONCE, DIGEST, PRUNING];

/// Takes the marks out of an object. Where no label or no annotation is left, the field goes.
pub fn remove(object: &mut Value) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    for field in ["labels", "annotations"] {
        let Some(texts) = metadata.get_mut(field).and_then(Value::as_object_mut) else {
            continue;
        };
        texts.retain(|name, _| !RESERVED.contains(&&**name));
        if texts.is_empty() {
            metadata.remove(field);
        }
    }
}

/// The id of a set: the one that the specification of ApplySets (KEP-3659) gives to the set's `ObjectSet`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SetId(String);

impl SetId {
    /// Returns the id of the set whose inventory this `ObjectSet` is.
    #[must_use]
    pub fn of(object_set: &ObjectRef) -> Self {
        use base64::Engine as _;
        use base64::engine::general_purpose::URL_SAFE_NO_PAD;
        let ObjectRef { namespace, name } = object_set;
        let digest = Sha256::digest(format!("{name}.{namespace}.ObjectSet.configurator.dev"));
        Self(format!("applyset-{}-v1", URL_SAFE_NO_PAD.encode(digest)))
    }

    /// The id as labels have it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the set that an object belongs to.
    #[must_use]
    pub fn owner_of(&self, object: &Value) -> MemberOwner {
        match label(object, PART_OF) {
            Some(id) if id == self.0 => MemberOwner::ThisSet {
                nonce: annotation(object, NONCE).unwrap_or_default().to_owned(),
            },
            Some(id) => MemberOwner::Other(match annotation(object, OBJECT_SET) {
                Some(name) => format!("the ObjectSet {name}"),
                None => format!("the ApplySet {id}"),
            }),
            None => controller_of(object).map_or(MemberOwner::Unowned, MemberOwner::Other),
        }
    }
}

impl fmt::Display for SetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The marks of one member.
#[derive(Debug, Clone, Copy)]
pub struct Marks<'a> {
    /// The set.
    pub set: &'a SetId,
    /// The `ObjectSet` of the set.
    pub object_set: &'a ObjectRef,
    /// The uid of the Configurator.
    pub configurator: &'a str,
    /// The text that the inventory records for the member.
    pub nonce: &'a str,
    /// The digest of the entry.
    pub digest: &'a str,
}

impl Marks<'_> {
    /// Puts the marks on an object.
    pub fn put_on(&self, object: &mut Value) {
        let name = self.object_set.to_string();
        let labels = [
            (PART_OF, self.set.as_str()),
            (CONFIGURATOR, self.configurator),
        ];
        let annotations = [
            (OBJECT_SET, &*name),
            (NONCE, self.nonce),
            (DIGEST, self.digest),
        ];
        insert(object, "labels", &labels);
        insert(object, "annotations", &annotations);
    }
}

/// Adds texts to the labels or annotations of an object. A field that is no object is replaced.
fn insert(object: &mut Value, field: &str, texts: &[(&str, &str)]) {
    let mut at = object;
    for name in ["metadata", field] {
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        let Value::Object(fields) = at else { return };
        at = fields.entry(name).or_insert(Value::Null);
    }
    let mut all = match at.take() {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    let texts = texts.iter();
    all.extend(texts.map(|(name, text)| ((*name).to_owned(), json!(text))));
    *at = Value::Object(all);
}

/// Returns the reserved label or annotation that an object has.
#[must_use]
pub fn reserved_in(object: &Value) -> Option<&'static str> {
    let has = |name: &&str| label(object, name).is_some() || annotation(object, name).is_some();
    RESERVED.into_iter().find(has)
}

/// Whether an object carries the mark of members that are about to be pruned.
#[must_use]
pub fn is_pruning(object: &Value) -> bool {
    annotation(object, PRUNING).is_some()
}

/// The digest of the entry that was applied last.
#[must_use]
pub fn digest_of(object: &Value) -> Option<&str> {
    annotation(object, DIGEST)
}

/// The id of the set that an object belongs to, whichever it is.
#[must_use]
pub fn set_of(object: &Value) -> Option<&str> {
    label(object, PART_OF)
}

fn label<'v>(object: &'v Value, name: &str) -> Option<&'v str> {
    object.get("metadata")?.get("labels")?.get(name)?.as_str()
}

/// The annotation of an object with this name.
#[must_use]
pub fn annotation<'v>(object: &'v Value, name: &str) -> Option<&'v str> {
    object
        .get("metadata")?
        .get("annotations")?
        .get(name)?
        .as_str()
}

/// Whether an object has this annotation with the value `true`.
#[must_use]
pub fn is_true(object: &Value, name: &str) -> bool {
    annotation(object, name) == Some("true")
}

/// The kind and name of an object's controller.
fn controller_of(object: &Value) -> Option<String> {
    let owners = field::at(object, "/metadata/ownerReferences")?.as_array()?;
    let controller = owners
        .iter()
        .find(|owner| owner.get("controller") == Some(&Value::Bool(true)))?;
    let text = |field: &str| controller.get(field).and_then(Value::as_str);
    Some(format!(
        "the {} {}",
        text("kind").unwrap_or("object"),
        text("name").unwrap_or_default()
    ))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn set() -> (ObjectRef, SetId) {
        let object_set = ObjectRef {
            namespace: "shop".to_owned(),
            name: "web-1".to_owned(),
        };
        let id = SetId::of(&object_set);
        (object_set, id)
    }

    fn marked(mut object: Value) -> Value {
        let (object_set, set) = set();
        let marks = Marks {
            set: &set,
            object_set: &object_set,
            configurator: "uid-1",
            nonce: "n",
            digest: "d",
        };
        marks.put_on(&mut object);
        object
    }

    #[expect(
        clippy::needless_pass_by_value,
        reason = "as `json!` and `expect!` are used"
    )]
    #[track_caller]
    fn check(object: Value, expected: Expect) {
        expected.assert_eq(&format!("{:?}", set().1.owner_of(&object)));
    }

    #[test]
    fn marks_are_added_to_the_labels_and_annotations_of_the_entry() {
        let object = json!({"kind": "ConfigMap", "metadata": {"name": "a", "labels": {"app": "web"}, "annotations": null}});
        let object = marked(object);
        expect![[r#"
            {
              "annotations": {
                "configurator.dev/digest": "d",
                "configurator.dev/nonce": "n",
                "configurator.dev/object-set": "shop/web-1"
              },
              "labels": {
                "app": "web",
                "applyset.kubernetes.io/part-of": "applyset-naDd97dGVph31ysMn_3VnDI2z2GsYfMSFaGOhJ1_I0E-v1",
                "configurator.dev/configurator": "uid-1"
              },
              "name": "a"
            }"#]]
        .assert_eq(&serde_json::to_string_pretty(&object["metadata"]).unwrap());
        assert_eq!(reserved_in(&object), Some(PART_OF));
        assert_eq!(
            reserved_in(&json!({"metadata": {"labels": {"app": "web"}}})),
            None
        );
    }

    #[test]
    fn the_owner_of_an_object_is_told_by_its_marks_and_its_controller() {
        check(
            marked(json!({"metadata": {}})),
            expect![[r#"ThisSet { nonce: "n" }"#]],
        );
        let part_of = |id: &str| json!({"labels": {PART_OF: id}});
        check(
            json!({"metadata": part_of("applyset-x-v1")}),
            expect![[r#"Other("the ApplySet applyset-x-v1")"#]],
        );
        check(
            json!({"metadata": {"labels": {PART_OF: "x"}, "annotations": {OBJECT_SET: "shop/other"}}}),
            expect![[r#"Other("the ObjectSet shop/other")"#]],
        );
        check(
            json!({"metadata": {"ownerReferences": [{"kind": "Job", "name": "a"}, {"kind": "ReplicaSet", "name": "b", "controller": true}]}}),
            expect![[r#"Other("the ReplicaSet b")"#]],
        );
        check(json!({"metadata": {"name": "a"}}), expect!["Unowned"]);
    }
}
