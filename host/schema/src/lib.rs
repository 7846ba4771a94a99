//! Schemas of API objects: validation, defaults, pruning, patches, apply and tables.
//!
//! Everything here is a pure function of its arguments: no I/O, no clock, no global state but caches of
//! built-in schemas. A server or an offline validator brings the objects, as [`serde_json::Value`].
//!
//! Start at [`Schema`]: [`builtin`](fn@builtin) gives that of a built-in kind, [`Schema::from_crd`] that of a custom one.

pub mod apply;
pub mod builtin;
pub mod field_error;
pub mod managed;
pub mod openapi;
pub mod patch;
pub mod schema;
pub mod table;

pub use builtin::{builtin, builtin_defaults, builtin_validate};
pub use field_error::{FieldError, Reason};
pub use schema::Schema;
