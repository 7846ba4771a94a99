//! Who owns which field: `metadata.managedFields`.

use jiff::Timestamp;
use serde_json::Value;

use crate::Schema;

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
/// `before` is the stored object (none for a create).
pub fn record_update(_schema: &Schema, _before: Option<&Value>, _after: &mut Value, _writer: Writer<'_>) {}
