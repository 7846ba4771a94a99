//! What redb reports when it fails, as the errors of this crate.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use crate::error::panic_message;
use crate::{OpenError, StoreError};

/// What went wrong inside redb.
pub(super) enum Failure {
    Error(redb::Error),
    /// redb asserts its invariants; a file with flipped bits makes it panic.
    Panic(Arc<str>),
}

impl From<redb::Error> for Failure {
    fn from(error: redb::Error) -> Self {
        Self::Error(error)
    }
}

/// Calls into redb. A panic there means a damaged file, which must not end the program.
pub(super) fn guarded<T>(call: impl FnOnce() -> Result<T, redb::Error>) -> Result<T, Failure> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result.map_err(Failure::Error),
        Err(payload) => Err(Failure::Panic(panic_message(&*payload))),
    }
}

impl Failure {
    pub(super) fn into_open_error(self, path: &Path) -> OpenError {
        let path = path.to_owned();
        match self {
            Self::Error(redb::Error::DatabaseAlreadyOpen) => {
                OpenError::HeldByAnotherProcess { path }
            }
            // redb reports a file that is too short or has a foreign header as invalid data.
            Self::Error(redb::Error::Io(source))
                if !matches!(
                    source.kind(),
                    std::io::ErrorKind::InvalidData | std::io::ErrorKind::UnexpectedEof
                ) =>
            {
                OpenError::Io { path, source }
            }
            Self::Error(error) => OpenError::Damaged {
                path,
                cause: error.to_string(),
            },
            Self::Panic(cause) => OpenError::Damaged {
                path,
                cause: cause.to_string(),
            },
        }
    }

    pub(super) fn into_store_error(self, path: &Path) -> StoreError {
        use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        let path = path.to_owned();
        match self {
            Self::Error(redb::Error::Io(source)) => {
                let cause = Arc::from(source.to_string());
                if matches!(source.kind(), StorageFull | QuotaExceeded | FileTooLarge) {
                    StoreError::Full { path, cause }
                } else {
                    StoreError::Io { path, cause }
                }
            }
            Self::Error(
                error @ (redb::Error::PreviousIo
                | redb::Error::DatabaseClosed
                | redb::Error::DatabaseAlreadyOpen),
            ) => StoreError::Io {
                path,
                cause: Arc::from(error.to_string()),
            },
            Self::Error(error) => StoreError::Damaged {
                path,
                cause: Arc::from(error.to_string()),
            },
            Self::Panic(cause) => StoreError::Damaged { path, cause },
        }
    }
}
