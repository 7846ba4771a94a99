//! Modules that are files.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use async_trait::async_trait;
use configurator_guest::bytes::ModuleBytes;
use rustix::fs::OFlags;

use super::file_threads::FileThreads;
use super::{Fetched, MAX_MODULE, ModulePolicies, ModuleSource, SourceError};
use crate::resource::ModuleSpec;

/// Modules are files under one of some directories. Names cannot lead out of them.
#[derive(Debug, Clone)]
pub struct ModuleDirectory {
    roots: Vec<PathBuf>,
    interval: Duration,
    threads: FileThreads,
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
            threads: FileThreads::default(),
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
    async fn fetch(&self, module: &ModuleSpec, _: &ModulePolicies) -> Result<Fetched, SourceError> {
        let mut missing = no_file();
        for path in self.candidates(module)? {
            let at = path.clone();
            let read = self.threads.run(move || read(&at)).await;
            let read = read.unwrap_or_else(|error| {
                let (path, source) = (path.clone(), std::io::Error::other(error));
                Err(SourceError::Io { path, source })
            });
            match read {
                Err(SourceError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
                    missing = SourceError::Io { path, source };
                }
                read => return read.map(Fetched::from),
            }
        }
        Err(missing)
    }

    /// Its length and when it was written, which a rename changes as well.
    async fn version(
        &self,
        module: &ModuleSpec,
        _: &ModulePolicies,
    ) -> Result<Option<String>, SourceError> {
        for path in self.candidates(module)? {
            let at = path.clone();
            let metadata = self.threads.run(move || std::fs::metadata(at)).await;
            let Ok(Ok(metadata)) = metadata else {
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

/// Reads and hashes a file, no further than a module may go.
fn read(path: &Path) -> Result<ModuleBytes, SourceError> {
    let io = |source| SourceError::Io {
        path: path.to_owned(),
        source,
    };
    // To open a pipe would otherwise wait for somebody who writes to it.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let file = file.map_err(io)?;
    let found = file.metadata().map_err(io)?;
    if !found.is_file() {
        let what = if found.is_dir() {
            "it is a folder"
        } else {
            "it is no file, but a pipe or a device"
        };
        return Err(io(std::io::Error::other(what)));
    }
    let too_large = |size: u64| SourceError::TooLarge {
        name: path.display().to_string(),
        size,
    };
    if found.len() > MAX_MODULE {
        return Err(too_large(found.len()));
    }
    // It may grow while it is read.
    let mut bytes = Vec::new();
    let read = file.take(MAX_MODULE + 1).read_to_end(&mut bytes);
    match read.map_err(io)? as u64 {
        ..=MAX_MODULE => Ok(ModuleBytes::from(bytes)),
        size => Err(too_large(size)),
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    async fn check(folder: &Path, file: &str, expected: &str) {
        let directory = ModuleDirectory::new(folder);
        let module = ModuleSpec {
            file: Some(file.to_owned()),
            ..ModuleSpec::default()
        };
        let fetched = directory.fetch(&module, &ModulePolicies::default()).await;
        let told = fetched.map_or_else(
            |error| error.to_string(),
            |fetched| format!("{} bytes", fetched.bytes.len()),
        );
        assert!(told.contains(expected), "{told}");
    }

    #[tokio::test]
    async fn only_a_file_is_read_and_no_further_than_a_module_may_go() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("module.wasm"), b"bytes").unwrap();
        check(folder.path(), "module.wasm", "5 bytes").await;
        let pipe = at("pipe.wasm");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        check(folder.path(), "pipe.wasm", "it is no file, but a pipe").await;
        std::fs::create_dir(at("folder.wasm")).unwrap();
        check(folder.path(), "folder.wasm", "it is a folder").await;
        let large = std::fs::File::create(at("large.wasm")).unwrap();
        large.set_len(MAX_MODULE + 1).unwrap();
        check(
            folder.path(),
            "large.wasm",
            "134217729 bytes; 134217728 are allowed",
        )
        .await;
    }
}
