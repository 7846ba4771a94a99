//! Objects as rows, the way `kubectl get` shows them.

use jiff::Timestamp;
use serde_json::Value;

use crate::FieldError;

pub(crate) mod jsonpath;

/// How objects of one kind are shown as rows.
#[derive(Debug)]
pub struct Table {}

impl Table {
    /// The columns of a built-in kind; of any other: name and creation time.
    pub fn builtin(_group: &str, _version: &str, _kind: &str) -> Table {
        Table {}
    }

    /// The columns of a custom kind: its `additionalPrinterColumns`, or the age if there are none.
    ///
    /// # Errors
    /// Columns with a missing name, an unknown type or a malformed path, below `additionalPrinterColumns`.
    pub fn from_crd(_columns: Option<&Value>) -> Result<Table, Vec<FieldError>> {
        Ok(Table {})
    }

    /// The `columnDefinitions` of a `Table`.
    pub fn columns(&self) -> Value {
        Value::Array(Vec::new())
    }

    /// The `cells` of the row of `object`.
    pub fn cells(&self, _object: &Value, _now: Timestamp) -> Vec<Value> {
        Vec::new()
    }
}
