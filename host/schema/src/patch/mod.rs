//! The three patch types that are not apply.

use thiserror::Error;

mod json;
mod merge;
mod strategic;

pub use json::json;
pub use merge::merge;
pub use strategic::strategic;

/// Why a patch could not be used.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum PatchError {
    /// The patch itself is malformed: 400 Bad Request.
    #[error("{0}")]
    Malformed(String),
    /// The patch does not fit the object (a `test` that fails, a path that is not there): 422 Invalid.
    #[error("{0}")]
    Inapplicable(String),
    /// The patch has too many operations: 413 Request Entity Too Large.
    #[error("The allowed maximum operations in a JSON patch is {limit}, got {count}")]
    TooLarge {
        /// How many there may be.
        limit: usize,
        /// How many there are.
        count: usize,
    },
}
