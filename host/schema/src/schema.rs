//! The schema of one kind: its fields, and how lists and maps in it merge.

use serde_json::Value;

use crate::FieldError;

/// A structural schema. Cheap to share as `Arc`; immutable.
#[derive(Debug)]
pub struct Schema {}

impl Schema {
    /// Reads the `openAPIV3Schema` of a version of a CustomResourceDefinition.
    ///
    /// # Errors
    /// Every breach of the rules of structural schemas, with its path below `openAPIV3Schema`.
    pub fn from_crd(_schema: &Value) -> Result<Schema, Vec<FieldError>> {
        Ok(Schema {})
    }

    /// What is wrong with `object`; `old` is the version before an update, for transition rules.
    pub fn validate(&self, _object: &Value, _old: Option<&Value>) -> Vec<FieldError> {
        Vec::new()
    }

    /// Sets what is absent and has a default.
    pub fn default(&self, _object: &mut Value) {}

    /// Removes the fields that the schema does not know, and returns their paths, as `spec.containers[0].bar`.
    pub fn prune(&self, _object: &mut Value) -> Vec<String> {
        Vec::new()
    }
}
