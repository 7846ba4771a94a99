//! Who owns which field: `metadata.managedFields`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::{
    Schema,
    field_set::{FieldSet, FieldSetError},
};

/// More entries of updates than this are merged, oldest first, into one called `ancient-changes`.
const UPDATE_MANAGERS_MAX: usize = 10;

/// Who writes, through which version and subresource, and when.
#[derive(Clone, Copy, Debug)]
pub struct Writer<'a> {
    /// The field manager's name.
    pub manager: &'a str,
    /// The version of the request, as `apps/v1`.
    pub api_version: &'a str,
    /// The subresource, as `status`; empty for the object itself.
    pub subresource: &'a str,
    /// The time for `managedFields[].time`, cut to seconds.
    pub now: Timestamp,
}

/// Records a create, update or patch in `after.metadata.managedFields`: Operation Update.
///
/// `before` is the stored object (none for a create). `after` is complete: defaults are set, system fields are filled in.
/// What the write adds or changes becomes the writer's; what it changes or removes is taken from all others. Entries that a
/// client sends in `after` count, as long as they are well-formed and the write is to no subresource; one empty entry, `[{}]`,
/// resets. An object whose entries were reset is not tracked until the next apply.
pub fn record_update(
    schema: &Schema,
    before: Option<&Value>,
    after: &mut Value,
    writer: Writer<'_>,
) {
    let sent = managed_fields(after).cloned();
    let stored = before.and_then(managed_fields);
    let reset = writer.subresource.is_empty() && sent.as_ref().is_some_and(is_reset);
    let mut managed = if reset {
        Managed::default()
    } else {
        let sent = if writer.subresource.is_empty() {
            sent.as_ref().and_then(|s| Managed::read(s).ok())
        } else {
            None
        };
        match sent.filter(|m| !m.entries.is_empty()) {
            Some(managed) => managed,
            None => stored
                .and_then(|s| Managed::read(s).ok())
                .unwrap_or_default(),
        }
    };
    set_managed_fields(after, None);
    if before.is_some() && managed.entries.is_empty() {
        return;
    }
    managed.update(schema, before, after, Id::update(writer), writer.now);
    managed.cap();
    set_managed_fields(after, managed.to_value());
}

/// The fields that the managers for which `predicate` holds own, of all operations and subresources. Malformed entries have none.
///
/// `managed_fields` is the value of `metadata.managedFields`. Takes time in proportion to its size.
pub fn fields_of(managed_fields: &Value, predicate: impl Fn(&str) -> bool) -> FieldSet {
    let mut set = FieldSet::default();
    for entry in managed_fields.as_array().into_iter().flatten() {
        let named = entry
            .get("manager")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if predicate(named)
            && let Some(Ok(fields)) = entry.get("fieldsV1").map(FieldSet::from_value)
        {
            set = set.union(&fields);
        }
    }
    set
}

/// Why `metadata.managedFields` could not be read.
#[derive(Debug, Error)]
pub(crate) enum ManagedError {
    #[error("managedFields is no list of objects")]
    NoList,
    #[error("metadata.managedFields[{0}].{1}: invalid or missing")]
    Entry(usize, &'static str),
    #[error(transparent)]
    Fields(#[from] FieldSetError),
}

/// What tells entries apart. The order is that of the entries in an object, but for the time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id {
    pub apply: bool,
    pub manager: String,
    /// Empty for applies: one manager has one entry, whatever version it applies in.
    version: String,
    pub subresource: String,
}

impl Id {
    pub(crate) fn update(writer: Writer<'_>) -> Id {
        Id {
            apply: false,
            manager: writer.manager.to_owned(),
            version: writer.api_version.to_owned(),
            subresource: writer.subresource.to_owned(),
        }
    }

    pub(crate) fn apply(writer: Writer<'_>) -> Id {
        Id {
            apply: true,
            version: String::new(),
            ..Id::update(writer)
        }
    }

    /// As messages about conflicts name it.
    pub(crate) fn shown(&self, api_version: &str) -> String {
        let mut text = format!("{:?}", self.manager);
        if !self.subresource.is_empty() {
            text.push_str(&format!(" with subresource {:?}", self.subresource));
        }
        if !self.apply {
            text.push_str(&format!(" using {api_version}"));
        }
        text
    }
}

/// One manager's fields.
#[derive(Clone, Debug)]
pub(crate) struct Owned {
    pub api_version: String,
    pub time: Option<String>,
    pub fields: FieldSet,
}

/// All entries of an object.
#[derive(Clone, Debug, Default)]
pub(crate) struct Managed {
    pub entries: BTreeMap<Id, Owned>,
}

impl Managed {
    pub(crate) fn read(value: &Value) -> Result<Managed, ManagedError> {
        let Value::Array(list) = value else {
            return Err(ManagedError::NoList);
        };
        let mut managed = Managed::default();
        for (at, entry) in list.iter().enumerate() {
            let text = |name: &str| {
                entry
                    .get(name)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned()
            };
            let apply = match text("operation").as_str() {
                "Apply" => true,
                "Update" => false,
                _ => return Err(ManagedError::Entry(at, "operation")),
            };
            let api_version = text("apiVersion");
            if api_version.is_empty() {
                return Err(ManagedError::Entry(at, "apiVersion"));
            }
            if text("fieldsType") != "FieldsV1" {
                return Err(ManagedError::Entry(at, "fieldsType"));
            }
            let fields = entry
                .get("fieldsV1")
                .map(FieldSet::from_value)
                .transpose()?
                .unwrap_or_default();
            let id = Id {
                apply,
                manager: text("manager"),
                version: if apply {
                    String::new()
                } else {
                    api_version.clone()
                },
                subresource: text("subresource"),
            };
            let time = entry.get("time").and_then(Value::as_str).map(str::to_owned);
            managed.entries.insert(
                id,
                Owned {
                    api_version,
                    time,
                    fields,
                },
            );
        }
        Ok(managed)
    }

    /// Nothing if there are no entries.
    pub(crate) fn to_value(&self) -> Option<Value> {
        let mut sorted: Vec<(&Id, &Owned)> = self.entries.iter().collect();
        sorted.sort_by(|(a, owned_a), (b, owned_b)| {
            (
                !a.apply,
                seconds(owned_a),
                &a.manager,
                &owned_a.api_version,
                &a.subresource,
            )
                .cmp(&(
                    !b.apply,
                    seconds(owned_b),
                    &b.manager,
                    &owned_b.api_version,
                    &b.subresource,
                ))
        });
        let list: Vec<Value> = sorted
            .into_iter()
            .map(|(id, owned)| {
                let mut entry = Map::new();
                entry.insert("manager".to_owned(), Value::String(id.manager.clone()));
                entry.insert(
                    "operation".to_owned(),
                    Value::from(if id.apply { "Apply" } else { "Update" }),
                );
                entry.insert(
                    "apiVersion".to_owned(),
                    Value::String(owned.api_version.clone()),
                );
                if let Some(time) = &owned.time {
                    entry.insert("time".to_owned(), Value::String(time.clone()));
                }
                entry.insert("fieldsType".to_owned(), Value::from("FieldsV1"));
                entry.insert("fieldsV1".to_owned(), owned.fields.to_value());
                if !id.subresource.is_empty() {
                    entry.insert(
                        "subresource".to_owned(),
                        Value::String(id.subresource.clone()),
                    );
                }
                Value::Object(entry)
            })
            .collect();
        (!list.is_empty()).then_some(Value::Array(list))
    }

    /// Charges the difference between two versions of an object to `id`.
    pub(crate) fn update(
        &mut self,
        schema: &Schema,
        before: Option<&Value>,
        after: &Value,
        id: Id,
        now: Timestamp,
    ) {
        let nothing = schema.hollow(after);
        let found = schema.root.compare(before.unwrap_or(&nothing), after);
        let mut touched = found.added.union(&found.modified);
        if schema.builtin && id.subresource.is_empty() {
            // Only writes to the status change it; what is there at the start is the server's.
            touched = touched.without_field("status");
        }
        let version = id.version.clone();
        let is_scale = id.subresource == "scale";
        for owned in self.entries.values_mut() {
            // The writer's own entry gets the fields back below.
            owned.fields = owned.fields.difference(&found.removed).difference(&touched);
        }
        let mine = touched.difference(system_fields());
        if !mine.is_empty() {
            let entry = self.entries.entry(id).or_insert_with(|| Owned {
                api_version: version,
                time: None,
                fields: FieldSet::default(),
            });
            entry.fields = entry.fields.union(&mine);
            // Of what is written through a Scale the servers of Kubernetes note no time.
            entry.time = (!is_scale).then(|| stamp(now));
        }
        self.drop_empty();
    }

    pub(crate) fn drop_empty(&mut self) {
        self.entries.retain(|_, owned| !owned.fields.is_empty());
    }

    /// Merges the oldest updates until no more than the limit are left.
    fn cap(&mut self) {
        let mut updates: Vec<(String, Id)> = self
            .entries
            .iter()
            .filter(|(id, _)| !id.apply)
            .map(|(id, owned)| (seconds(owned).to_owned(), id.clone()))
            .collect();
        let mut count = updates.len();
        if count <= UPDATE_MANAGERS_MAX {
            return;
        }
        updates.sort();
        let mut first: BTreeMap<String, Id> = BTreeMap::new();
        for (_, id) in updates {
            if count <= UPDATE_MANAGERS_MAX {
                return;
            }
            let Some(oldest) = first.get(&id.version).cloned() else {
                first.insert(id.version.clone(), id);
                continue;
            };
            let bucket = Id {
                apply: false,
                manager: "ancient-changes".to_owned(),
                version: id.version.clone(),
                subresource: String::new(),
            };
            if oldest != bucket
                && let Some(owned) = self.entries.remove(&oldest)
            {
                self.entries.insert(bucket.clone(), owned);
                first.insert(id.version.clone(), bucket.clone());
            }
            if let Some(newer) = self.entries.remove(&id)
                && let Some(owned) = self.entries.get_mut(&bucket)
            {
                owned.fields = owned.fields.union(&newer.fields);
                owned.time = newer.time;
                count -= 1;
            }
        }
    }
}

impl Schema {
    /// What an object looks like before it is created. The types of built-in kinds have some objects always, if empty: so
    /// nobody comes to own `spec` itself.
    fn hollow(&self, after: &Value) -> Value {
        let mut object = Map::new();
        object.insert("metadata".to_owned(), json!({}));
        if self.builtin {
            if after.get("rules").is_some_and(Value::is_null) {
                object.insert("rules".to_owned(), Value::Null);
            }
            for name in [
                "eventTime",
                "firstTimestamp",
                "lastTimestamp",
                "deprecatedFirstTimestamp",
                "deprecatedLastTimestamp",
                "reportingComponent",
                "reportingInstance",
            ] {
                if let Some(value) = after.get(name).filter(|v| v.is_null() || **v == "") {
                    object.insert(name.to_owned(), value.clone());
                }
            }
            for name in ["involvedObject", "regarding", "source", "deprecatedSource"] {
                if after.get(name).is_some_and(Value::is_object) {
                    object.insert(name.to_owned(), json!({}));
                }
            }
            for name in ["spec", "status"] {
                if after.get(name).is_some_and(Value::is_object)
                    && self.root.property(name).is_some()
                {
                    object.insert(name.to_owned(), json!({}));
                }
            }
            if let Some(spec) = object.get_mut("spec") {
                let after = after.get("spec").unwrap_or(&Value::Null);
                hollow_template(after, spec);
                if after.get("policyTypes").is_some() {
                    insert(spec, "podSelector", json!({}));
                }
                if after.get("containers").is_some() {
                    insert(spec, "containers", Value::Null);
                }
                // Those of a Namespace are the server's.
                if let Some(finalizers) = after.get("finalizers") {
                    insert(spec, "finalizers", finalizers.clone());
                }
                if let Some(job) = after.get("jobTemplate") {
                    let mut inner = json!({});
                    hollow_template(job.get("spec").unwrap_or(&Value::Null), &mut inner);
                    insert(spec, "jobTemplate", json!({"metadata": {}, "spec": inner}));
                }
                for name in ["strategy", "updateStrategy", "resources", "scaleTargetRef"] {
                    if after.get(name).is_some() {
                        insert(spec, name, json!({}));
                    }
                }
            }
        }
        Value::Object(object)
    }
}

fn hollow_template(after: &Value, spec: &mut Value) {
    if after.get("template").is_some() {
        insert(
            spec,
            "template",
            json!({"metadata": {}, "spec": {"containers": null}}),
        );
    }
}

fn insert(object: &mut Value, name: &str, value: Value) {
    if let Value::Object(map) = object {
        map.insert(name.to_owned(), value);
    }
}

/// Fields that belong to the system, and that no manager owns.
pub(crate) fn system_fields() -> &'static FieldSet {
    static FIELDS: std::sync::OnceLock<FieldSet> = std::sync::OnceLock::new();
    FIELDS.get_or_init(|| {
        let mut set = FieldSet::default();
        for top in ["apiVersion", "kind", "metadata"] {
            set.insert(&[top]);
        }
        for field in [
            "name",
            "namespace",
            "creationTimestamp",
            "selfLink",
            "uid",
            "clusterName",
            "generation",
            "managedFields",
            "resourceVersion",
        ] {
            set.insert(&["metadata", field]);
        }
        set
    })
}

/// The time of an entry: RFC 3339, whole seconds, UTC.
pub(crate) fn stamp(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The value of `metadata.managedFields`.
pub(crate) fn managed_fields(object: &Value) -> Option<&Value> {
    object.get("metadata")?.get("managedFields")
}

/// Replaces `metadata.managedFields`; none removes it.
pub(crate) fn set_managed_fields(object: &mut Value, value: Option<Value>) {
    let Some(Value::Object(metadata)) = object.get_mut("metadata") else {
        return;
    };
    match value {
        Some(value) => {
            metadata.insert("managedFields".to_owned(), value);
        }
        None => {
            metadata.remove("managedFields");
        }
    }
}

fn is_reset(value: &Value) -> bool {
    matches!(value.as_array().map(Vec::as_slice), Some([Value::Object(entry)]) if entry.is_empty())
}

/// Times of whole seconds in UTC sort as text.
fn seconds(owned: &Owned) -> &str {
    owned.time.as_deref().unwrap_or_default()
}
