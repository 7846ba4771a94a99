//! Schemas of API objects: validation, defaults, pruning, patches, apply and tables.
//!
//! Everything here is a pure function of its arguments: no I/O, no clock, no global state but caches of
//! built-in schemas. A server or an offline validator brings the objects, as [`serde_json::Value`].
//!
//! Start at [`Schema`]: [`builtin`](fn@builtin) gives that of a built-in kind, [`Schema::from_crd`] that of a custom one.

pub mod apply;
pub mod builtin;
pub mod cel;
mod default;
pub mod field_error;
pub mod field_set;
mod format;
pub mod managed;
mod metadata;
pub mod openapi;
pub mod patch;
mod prune;
pub mod quantity;
pub mod schema;
mod structural;
pub mod table;
mod typed;
mod unmarshal;
mod validate;

pub use builtin::{builtin, builtin_defaults, builtin_validate};
pub use field_error::{FieldError, Reason};
pub use field_set::FieldSet;
pub use metadata::{canonicalize_metadata, validate_metadata};
pub use schema::Schema;
