use std::path::PathBuf;
use std::sync::Arc;

/// Why a file could not be opened. Each message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file is there, but is no store or has been damaged.
    #[error("{path} is damaged or is no store file: {cause}. Restore it from a copy, or move it away to start with an empty one", path = path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        cause: String,
    },
    /// Another process, or another store in this one, has the file open.
    #[error("{path} is in use by another process. Stop it, or choose another data folder", path = path.display())]
    HeldByAnotherProcess {
        /// The file.
        path: PathBuf,
    },
    /// The operating system refused.
    #[error("cannot open {path}: {source}. Check that its folder exists, is writable and has space left", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
}

/// Why the store could not answer. Of a transaction nothing was written, except where [`Unknown`](Self::Unknown) says that nobody knows.
///
/// The store itself goes on: later calls work again when the cause has gone.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The disk is full, or a quota or a limit of the file's size is reached.
    #[error("no space is left for {path}: {cause}. Nothing was written; free some space and try again", path = path.display())]
    Full {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        cause: Arc<str>,
    },
    /// Reading or writing failed.
    #[error("{path} could not be read or written: {cause}. Nothing was written. Check the disk; the store tries to open the file again by itself", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        cause: Arc<str>,
    },
    /// A transaction was being written when the disk failed, and the file cannot be opened to see whether it is there. If it is, callbacks
    /// run when the file opens again.
    #[error("whether {path} has the change is unknown: {cause}. Free some space or check the disk, and read before writing again; the store opens the file again by itself", path = path.display())]
    Unknown {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        cause: Arc<str>,
    },
    /// The content of the file contradicts itself.
    #[error("{path} is damaged: {cause}. Stop the program and restore the file from a copy", path = path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        cause: Arc<str>,
    },
    /// The transaction's own code panicked. It left no trace.
    #[error(
        "a transaction panicked: {cause}. Nothing of it was written; this is a bug in the program"
    )]
    Panicked {
        /// The panic's message.
        cause: Arc<str>,
    },
    /// The store's thread has ended.
    #[error("the store is closed")]
    Closed,
}

impl StoreError {
    /// The error of a commit that failed, where nobody can say whether it was written.
    pub(crate) fn into_unknown(self) -> Self {
        match self {
            Self::Full { path, cause }
            | Self::Io { path, cause }
            | Self::Damaged { path, cause } => Self::Unknown { path, cause },
            known @ (Self::Unknown { .. } | Self::Panicked { .. } | Self::Closed) => known,
        }
    }
}

/// Why a transaction was not written, or why nobody can say.
#[derive(Debug, thiserror::Error)]
pub enum WriteError<E> {
    /// The transaction itself said no.
    #[error("the transaction was refused: {0}")]
    Refused(E),
    /// The store failed.
    #[error(transparent)]
    Store(StoreError),
}

/// What a caught panic said.
pub(crate) fn panic_message(payload: &(dyn std::any::Any + Send)) -> Arc<str> {
    if let Some(text) = payload.downcast_ref::<&str>() {
        Arc::from(*text)
    } else if let Some(text) = payload.downcast_ref::<String>() {
        Arc::from(text.as_str())
    } else {
        Arc::from("no message")
    }
}
