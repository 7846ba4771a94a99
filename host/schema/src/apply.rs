//! Server-side apply.

use std::fmt;

use serde_json::{Map, Value};
use thiserror::Error;

use crate::{
    Schema,
    field_set::{Entry, FieldSet},
    managed::{
        Id, Managed, Owned, Writer, managed_fields, set_managed_fields, stamp, system_fields,
    },
    schema::Node,
};

/// One apply of a configuration.
#[derive(Debug)]
pub struct ApplyRequest<'a> {
    /// The schema of the kind.
    pub schema: &'a Schema,
    /// The stored object, if it exists.
    pub live: Option<&'a Value>,
    /// What is applied: everything that this manager wants, no more. Without `metadata.managedFields`, and without what the
    /// request cannot change (`status` in an apply to the object itself, all but `status` in one to its status).
    pub config: Value,
    /// Who applies.
    pub writer: Writer<'a>,
    /// Take fields from other managers instead of reporting conflicts.
    pub force: bool,
}

/// Why an apply was refused.
#[derive(Debug, Error)]
pub enum ApplyError {
    /// Other managers own fields with other values: 409 Conflict.
    #[error("{0}")]
    Conflicts(Conflicts),
    /// The configuration does not fit the schema: 400 Bad Request.
    #[error("failed to create typed patch object: {0}")]
    Malformed(String),
}

/// The fields that other managers own with other values; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflicts(pub Vec<Conflict>);

/// One field that another manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The field, as `.spec.replicas`: the `field` of a cause in a `Status`.
    pub field: String,
    /// The other manager, as `"kubectl" using apps/v1`.
    pub manager: String,
}

impl Conflict {
    /// The `message` of a cause whose reason is `FieldManagerConflict`.
    pub fn message(&self) -> String {
        format!("conflict with {}", self.manager)
    }
}

impl fmt::Display for Conflicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [one] = self.0.as_slice() {
            return write!(
                f,
                "Apply failed with 1 conflict: conflict with {}: {}",
                one.manager, one.field
            );
        }
        write!(f, "Apply failed with {} conflicts: ", self.0.len())?;
        let mut last = None;
        for conflict in &self.0 {
            if last != Some(&conflict.manager) {
                if last.is_some() {
                    f.write_str("\n")?;
                }
                write!(f, "conflicts with {}:", conflict.manager)?;
                last = Some(&conflict.manager);
            }
            write!(f, "\n- {}", conflict.field)?;
        }
        Ok(())
    }
}

/// The object as it is after the apply, with `metadata.managedFields`.
///
/// Fields that the manager applied before and leaves out now go, unless somebody else owns them. Fields of others stay.
/// An apply that changes neither the object nor who owns what returns an object equal to `live`. Defaults are not set:
/// set them in the result, so that nobody owns them.
///
/// # Errors
/// [`ApplyError`]; nothing is applied then.
pub fn apply(request: ApplyRequest<'_>) -> Result<Value, ApplyError> {
    let ApplyRequest {
        schema,
        live,
        config,
        writer,
        force,
    } = request;
    let root = schema.root.as_ref();
    if managed_fields(&config).is_some_and(|m| !m.is_null()) {
        return Err(ApplyError::Malformed(
            "metadata.managedFields must be nil".to_owned(),
        ));
    }
    root.check_config(&config, "")
        .map_err(ApplyError::Malformed)?;

    let stored = live.and_then(managed_fields);
    let mut managed = stored
        .and_then(|m| Managed::read(m).ok())
        .unwrap_or_default();
    if let Some(live) = live
        && managed.entries.is_empty()
    {
        let first = Writer {
            manager: "before-first-apply",
            subresource: "",
            ..writer
        };
        managed.update(schema, None, live, Id::update(first), writer.now);
    }

    let id = Id::apply(writer);
    let owned_now = root.field_set(&config);
    let mut after = root.merge(without_managed_fields(live), config);
    let last = managed.entries.remove(&id);
    if let Some(last) = &last
        && !last.fields.is_subset(&owned_now)
    {
        let everybody = managed
            .entries
            .values()
            .fold(owned_now.clone(), |all, owned| all.union(&owned.fields));
        after = prune(root, after, &last.fields, &everybody);
    }

    // That `live` has managed fields and `after` has none shows up as removed, and nobody owns them.
    let nothing = Value::Object(Map::new());
    let found = root.compare(live.unwrap_or(&nothing), &after);
    let touched = found.added.union(&found.modified);
    let mut conflicts = Vec::new();
    for (other, owned) in &mut managed.entries {
        let taken = owned.fields.intersection(&touched);
        if !taken.is_empty() && !force {
            let manager = other.shown(&owned.api_version);
            conflicts.extend(taken.paths().into_iter().map(|field| Conflict {
                field,
                manager: manager.clone(),
            }));
        }
        owned.fields = owned.fields.difference(&taken).difference(&found.removed);
    }
    if !conflicts.is_empty() {
        return Err(ApplyError::Conflicts(Conflicts(conflicts)));
    }
    managed.drop_empty();
    schema.canonicalize(&mut after);

    let fields = owned_now.difference(system_fields());
    let same_fields = last
        .as_ref()
        .is_some_and(|last| last.fields == fields && last.api_version == writer.api_version);
    let same = live.filter(|live| is_same(live, &after));
    if same_fields && let Some(live) = same {
        return Ok(live.clone());
    }
    if !fields.is_empty() {
        // The time is that of the last change of the object, which an apply of what is there already is not.
        let time = match (same, last) {
            (Some(_), last) => last.and_then(|last| last.time),
            (None, _) => Some(stamp(writer.now)),
        };
        managed.entries.insert(
            id,
            Owned {
                api_version: writer.api_version.to_owned(),
                time,
                fields,
            },
        );
    }
    if after.get("metadata").is_none()
        && let Value::Object(map) = &mut after
    {
        map.insert("metadata".to_owned(), Value::Object(Map::new()));
    }
    set_managed_fields(&mut after, managed.to_value());
    Ok(after)
}

/// Removes what was applied last time and is claimed by nobody now.
fn prune(root: &Node, merged: Value, last: &FieldSet, claimed: &FieldSet) -> Value {
    let empty = || Value::Object(Map::new());
    let keep = Entry {
        member: true,
        children: claimed.clone(),
    };
    let last = root.with_named_parents(last);
    let claimed = root.with_named_parents(claimed);
    let all = root.with_named_parents(&root.field_set(&merged));
    let left =
        |value: Value, set: &FieldSet| root.without(value, set, Some(&keep)).unwrap_or_else(empty);

    // All that was applied last time, then back with what somebody claims, then back with what was never applied.
    let without_last = left(merged.clone(), &last);
    let kept = root
        .with_named_parents(&root.field_set(&without_last))
        .union(&claimed);
    let with_claimed = left(merged.clone(), &all.difference(&kept));
    let kept = root
        .with_named_parents(&root.field_set(&with_claimed))
        .union(&claimed);
    left(merged, &all.difference(&kept).intersection(&last))
}

/// Whether two objects are equal but for `metadata.managedFields` of the first. Unlike a comparison of fields this sees the
/// order of items.
fn is_same(live: &Value, after: &Value) -> bool {
    let (Value::Object(live), Value::Object(after)) = (live, after) else {
        return false;
    };
    live.len() == after.len()
        && live
            .iter()
            .all(|(name, value)| match (value, after.get(name)) {
                (Value::Object(a), Some(Value::Object(b))) if name == "metadata" => {
                    let mut others = a.iter().filter(|(n, _)| *n != "managedFields");
                    a.len() - usize::from(a.contains_key("managedFields")) == b.len()
                        && others.all(|(n, v)| b.get(n) == Some(v))
                }
                (a, b) => Some(a) == b,
            })
}

/// A copy without `metadata.managedFields`.
fn without_managed_fields(live: Option<&Value>) -> Value {
    let mut copy = Map::new();
    for (name, value) in live.and_then(Value::as_object).into_iter().flatten() {
        let value = match value {
            Value::Object(metadata) if name == "metadata" => Value::Object(
                metadata
                    .iter()
                    .filter(|(n, _)| *n != "managedFields")
                    .map(|(n, v)| (n.clone(), v.clone()))
                    .collect(),
            ),
            other => other.clone(),
        };
        copy.insert(name.clone(), value);
    }
    Value::Object(copy)
}
