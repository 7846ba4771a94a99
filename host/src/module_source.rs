//! Where modules come from.

use std::path::{Component, Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use async_trait::async_trait;

use crate::resource::ModuleSpec;

/// The largest module that is read, in bytes.
pub const MAX_MODULE: u64 = 128 << 20;

/// Fetches the bytes of modules. An embedder may bring its own.
#[async_trait]
pub trait ModuleSource: Send + Sync + 'static {
    /// The module that a Configurator names. Its digest is checked by the host.
    async fn fetch(&self, module: &ModuleSpec) -> Result<Vec<u8>, SourceError>;

    /// Names what [`fetch`](Self::fetch) would return now, without fetching it: another name means that it is worth fetching again. It is
    /// asked every [`interval`](Self::interval), so it must be cheap. By default nothing is known, and what runs goes on.
    async fn version(&self, _module: &ModuleSpec) -> Option<String> {
        None
    }

    /// How often the version is asked for. Default: every second.
    fn interval(&self) -> Duration {
        Duration::from_secs(1)
    }
}

/// Why a module could not be fetched.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The resource names no source that this host has.
    #[error("the module has no source that this host knows; name a file in `module.file`")]
    NoSource,
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
    /// A source of an embedder's own could not.
    #[error("{0}")]
    Other(String),
    /// The file is too large.
    #[error("the module {path} has {size} bytes; {MAX_MODULE} are allowed", path = path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its bytes.
        size: u64,
    },
}

/// Modules are files under one of some directories. Names cannot lead out of them.
#[derive(Debug, Clone)]
pub struct ModuleDirectory {
    roots: Vec<PathBuf>,
    interval: Duration,
}

impl ModuleDirectory {
    /// The modules under this directory.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self::of(vec![root.into()])
    }

    /// The modules under these directories; of two with the same name, that of the earlier one.
    #[must_use]
    pub fn of(roots: Vec<PathBuf>) -> Self {
        Self {
            roots,
            interval: Duration::from_secs(1),
        }
    }

    /// As this, but looked at so often for modules that have changed.
    #[must_use]
    pub fn every(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// Where the file may be, in the order in which it is looked for.
    fn candidates(&self, module: &ModuleSpec) -> Result<Vec<PathBuf>, SourceError> {
        let file = module.file.as_deref().ok_or(SourceError::NoSource)?;
        let is_plain = Path::new(file)
            .components()
            .all(|component| matches!(component, Component::Normal(_) | Component::CurDir));
        if file.is_empty() || !is_plain {
            return Err(SourceError::Outside {
                file: file.to_owned(),
            });
        }
        Ok(self.roots.iter().map(|root| root.join(file)).collect())
    }
}

#[async_trait]
impl ModuleSource for ModuleDirectory {
    async fn fetch(&self, module: &ModuleSpec) -> Result<Vec<u8>, SourceError> {
        let mut missing = SourceError::NoSource;
        for path in self.candidates(module)? {
            match read(&path).await {
                Err(SourceError::Io { source, .. })
                    if source.kind() == std::io::ErrorKind::NotFound =>
                {
                    missing = SourceError::Io { path, source };
                }
                read => return read,
            }
        }
        Err(missing)
    }

    /// Its length and when it was written, which a rename changes as well.
    async fn version(&self, module: &ModuleSpec) -> Option<String> {
        for path in self.candidates(module).ok()? {
            if let Ok(metadata) = tokio::fs::metadata(&path).await {
                let written = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
                let (path, size) = (path.display(), metadata.len());
                return Some(format!("{path} {size} {}", written.as_nanos()));
            }
        }
        Some("missing".to_owned())
    }

    fn interval(&self) -> Duration {
        self.interval
    }
}

async fn read(path: &Path) -> Result<Vec<u8>, SourceError> {
    let io = |source| SourceError::Io {
        path: path.to_owned(),
        source,
    };
    let size = tokio::fs::metadata(path).await.map_err(io)?.len();
    if size > MAX_MODULE {
        return Err(SourceError::TooLarge {
            path: path.to_owned(),
            size,
        });
    }
    tokio::fs::read(path).await.map_err(io)
}
