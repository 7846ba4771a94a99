//! Where modules come from.

use std::path::{Component, Path, PathBuf};

use async_trait::async_trait;

use crate::resource::ModuleSpec;

/// The largest module that is read, in bytes.
pub const MAX_MODULE: u64 = 128 << 20;

/// Fetches the bytes of modules. An embedder may bring its own.
#[async_trait]
pub trait ModuleSource: Send + Sync + 'static {
    /// The module that a Configurator names. Its digest is checked by the host.
    async fn fetch(&self, module: &ModuleSpec) -> Result<Vec<u8>, SourceError>;
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
}

impl ModuleDirectory {
    /// The modules under this directory.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            roots: vec![root.into()],
        }
    }

    /// The modules under these directories; of two with the same name, that of the earlier one.
    #[must_use]
    pub fn of(roots: Vec<PathBuf>) -> Self {
        Self { roots }
    }
}

#[async_trait]
impl ModuleSource for ModuleDirectory {
    async fn fetch(&self, module: &ModuleSpec) -> Result<Vec<u8>, SourceError> {
        let file = module.file.as_deref().ok_or(SourceError::NoSource)?;
        let is_plain = Path::new(file)
            .components()
            .all(|component| matches!(component, Component::Normal(_) | Component::CurDir));
        if file.is_empty() || !is_plain {
            return Err(SourceError::Outside {
                file: file.to_owned(),
            });
        }
        let mut missing = SourceError::NoSource;
        for root in &self.roots {
            let path = root.join(file);
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
