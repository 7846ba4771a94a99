//! Modules that are files.

use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use async_trait::async_trait;

use super::{Fetched, MAX_MODULE, ModuleSource, SourceError};
use crate::resource::ModuleSpec;

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
        let file = module.file.as_deref().ok_or_else(no_file)?;
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

fn no_file() -> SourceError {
    SourceError::NoSource {
        known: "file".to_owned(),
    }
}

#[async_trait]
impl ModuleSource for ModuleDirectory {
    async fn fetch(&self, module: &ModuleSpec) -> Result<Fetched, SourceError> {
        let mut missing = no_file();
        for path in self.candidates(module)? {
            match read(&path).await {
                Err(SourceError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
                    missing = SourceError::Io { path, source };
                }
                read => return read.map(Fetched::from),
            }
        }
        Err(missing)
    }

    /// Its length and when it was written, which a rename changes as well.
    async fn version(&self, module: &ModuleSpec) -> Result<Option<String>, SourceError> {
        for path in self.candidates(module)? {
            let Ok(metadata) = tokio::fs::metadata(&path).await else {
                continue;
            };
            let written = metadata.modified().ok();
            let written = written.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            let written = written.unwrap_or_default().as_nanos();
            let (path, size) = (path.display(), metadata.len());
            return Ok(Some(format!("{path} {size} {written}")));
        }
        Ok(Some("missing".to_owned()))
    }

    fn interval(&self, _: &ModuleSpec) -> Duration {
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
            name: path.display().to_string(),
            size,
        });
    }
    tokio::fs::read(path).await.map_err(io)
}
