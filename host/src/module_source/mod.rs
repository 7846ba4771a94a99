//! Where modules come from: files, ConfigMaps, registries of OCI artifacts; and copies of what was fetched.

mod config_map;
mod copies;
mod directory;
mod file_threads;
mod guarded;
#[cfg(feature = "oci")]
pub mod oci;
mod permitted;
mod policy;
mod sources;

use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use configurator_guest::bytes::ModuleBytes;

pub use self::config_map::ConfigMaps;
pub use self::copies::{Copies, DEFAULT_COPIES};
pub use self::directory::ModuleDirectory;
pub(crate) use self::guarded::Guarded;
pub(crate) use self::permitted::Permitted;
pub use self::policy::{ModulePolicies, ModulePolicy, PolicyError, PolicyOwner};
pub use self::sources::ModuleSources;
use crate::resource::ModuleSpec;

/// The largest module that is read, in bytes.
pub const MAX_MODULE: u64 = 128 << 20;

/// A module as its source has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// The component.
    pub bytes: ModuleBytes,
    /// Why it may be older than what the source has, where it is a copy: the source cannot be asked.
    pub copied: Option<String>,
}

impl From<ModuleBytes> for Fetched {
    /// What the source has now.
    fn from(bytes: ModuleBytes) -> Self {
        Self {
            bytes,
            copied: None,
        }
    }
}

impl From<Vec<u8>> for Fetched {
    /// What the source has now.
    fn from(bytes: Vec<u8>) -> Self {
        ModuleBytes::from(bytes).into()
    }
}

/// Fetches the bytes of modules. An embedder may bring its own.
#[async_trait]
pub trait ModuleSource: Send + Sync + 'static {
    /// Fetches the module that a Configurator names, if the policies for its namespace allow it. The host checks the digest.
    ///
    /// # Errors
    /// When there is none, or it may not be had.
    async fn fetch(
        &self,
        module: &ModuleSpec,
        policies: &ModulePolicies,
    ) -> Result<Fetched, SourceError>;

    /// Names what [`fetch`](Self::fetch) would return now, without fetching it: another name means that it is worth fetching again. It is
    /// asked every [`interval`](Self::interval), so it must be cheap. By default nothing is known, and what runs goes on.
    ///
    /// # Errors
    /// When the source cannot be asked: what runs goes on, and the Configurator's status says why it may be old.
    async fn version(
        &self,
        _module: &ModuleSpec,
        _policies: &ModulePolicies,
    ) -> Result<Option<String>, SourceError> {
        Ok(None)
    }

    /// How often the version of this module is asked for. Default: every second.
    fn interval(&self, _module: &ModuleSpec) -> Duration {
        Duration::from_secs(1)
    }
}

/// Why a module could not be fetched.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The resource names no source that this host has.
    #[error("the module has no source that this host knows: name one of {known}")]
    NoSource {
        /// The fields of the sources that it has.
        known: String,
    },
    /// The name leads out of the module directory.
    #[error("module.file {file:?} must be a plain relative path inside the module directory")]
    Outside {
        /// The name.
        file: String,
    },
    /// The operating system refused.
    #[error("the module {path} cannot be read: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// It is too large.
    #[error("the module {name} has {size} bytes; {MAX_MODULE} are allowed")]
    TooLarge {
        /// The file, or where else it is.
        name: String,
        /// Its bytes.
        size: u64,
    },
    /// A policy does not allow it.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The source answers that there is none, or that this host may not have it; or what it has is no module.
    #[error("{0}")]
    Refused(String),
    /// The source cannot be asked now.
    #[error("{0}")]
    Unavailable(String),
}
