//! Writes recordings.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use configurator_core::run::Run;
use configurator_core::time::Timestamp;
use configurator_guest::bytes::ModuleBytes;

use super::taking::Taking;
use super::{Recording, VERSION};
use crate::resource::segment_of;

/// How many bytes of recordings are written unless something else is said: 1 GiB.
pub const DEFAULT_RECORDINGS: u64 = 1 << 30;
/// Where the modules of recordings are, in their folder. No Configurator can have this name.
pub const MODULES: &str = ".modules";

/// Why runs cannot be recorded.
#[derive(Debug, thiserror::Error)]
#[error("runs cannot be recorded in {}: {reason}", folder.display())]
pub struct RecordError {
    folder: PathBuf,
    reason: String,
}

/// Writes runs to a folder, until there are too many bytes of them.
#[derive(Debug)]
pub struct Recorder {
    folder: PathBuf,
    max_size: u64,
    records_all: bool,
    /// Of the stand-ins of secrets.
    key: [u8; 32],
    size: AtomicU64,
    number: AtomicU64,
    is_full: AtomicBool,
}

impl Recorder {
    /// Into this folder, which is made with the first of them, with at most so many bytes. What is there already counts.
    ///
    /// # Errors
    /// When the system has no random numbers, or the folder cannot be read.
    pub fn new(folder: impl Into<PathBuf>, max_size: u64) -> Result<Self, RecordError> {
        let folder = folder.into();
        let failed = |reason: String| RecordError {
            folder: folder.clone(),
            reason,
        };
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(|error| failed(error.to_string()))?;
        let size = size_of(&folder).map_err(|error| failed(error.to_string()))?;
        Ok(Self {
            key,
            max_size,
            records_all: true,
            size: AtomicU64::new(size),
            number: AtomicU64::new(0),
            is_full: AtomicBool::new(false),
            folder,
        })
    }

    /// As this, but only for Configurators that ask for it: with `spec.record`.
    #[must_use]
    pub fn where_asked(mut self) -> Self {
        self.records_all = false;
        self
    }

    /// Whether it is for every Configurator that does not say otherwise.
    #[must_use]
    pub const fn records_all(&self) -> bool {
        self.records_all
    }

    /// Keeps a module, without which its runs cannot be made again.
    pub async fn keep_module(self: &Arc<Self>, bytes: ModuleBytes) {
        let this = self.clone();
        let written = tokio::task::spawn_blocking(move || {
            let path = module_path(&this.folder, &bytes.digest().to_string());
            if path.exists() || !this.has_room(bytes.len()) {
                return;
            }
            if let Err(error) = this.write(&path, &bytes) {
                tracing::warn!(path = %path.display(), "a module of recordings is not kept: {error}");
            }
        });
        let _ = written.await;
    }

    /// Begins to record a run.
    pub(crate) fn begin<'a, M: Clone + Send + 'static>(
        self: &Arc<Self>,
        run: &Run,
        secrets: impl IntoIterator<Item = &'a configurator_core::document::Document>,
        now: Timestamp,
    ) -> Taking<M> {
        let configurator = run.configurator();
        let recording = Recording {
            version: VERSION,
            configurator: configurator.key.clone(),
            run: run.id().to_owned(),
            time: now,
            module: run.module().digest().to_owned(),
            limits: configurator.limits,
            objects: run
                .members()
                .iter()
                .map(|member| member.key.to_string())
                .collect(),
            calls: Vec::new(),
            end: String::new(),
        };
        let mut taking = Taking::new(self.clone(), self.key, recording);
        taking.learn(secrets);
        taking
    }

    pub(super) fn keep(&self, recording: &Recording) {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let Recording {
            configurator,
            time,
            run,
            ..
        } = recording;
        // Files of one folder are in the order of their runs.
        let name = format!("{time}-{number:06}-{run}.json").replace(':', "");
        let folder = self.folder.join(segment_of(configurator));
        let path = folder.join(name);
        let text = serde_json::to_vec_pretty(recording).map_err(io::Error::other);
        let written = text.and_then(|text| match self.has_room(text.len()) {
            true => self.write(&path, &text),
            false => Ok(()),
        });
        if let Err(error) = written {
            tracing::warn!(path = %path.display(), "a run is not recorded: {error}");
        }
    }

    /// Takes room for so many bytes, as long as there is any.
    fn has_room(&self, size: usize) -> bool {
        let size = size as u64;
        let before = self.size.fetch_add(size, Ordering::Relaxed);
        if before.saturating_add(size) <= self.max_size {
            return true;
        }
        if !self.is_full.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                folder = %self.folder.display(),
                "there are {} bytes of recordings: no more runs are recorded",
                self.max_size
            );
        }
        false
    }

    /// Writes aside and renames, so that nobody reads half of it; for its owner alone.
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let aside = self
            .folder
            .join(format!(".{}.{number}", std::process::id()));
        if let Some(above) = path.parent() {
            make_folder(above)?;
        }
        let written = private(&aside)
            .and_then(|mut file| file.write_all(bytes))
            .and_then(|()| fs::rename(&aside, path));
        if written.is_err() {
            let _ = fs::remove_file(&aside);
        }
        written
    }
}

/// Makes a folder of recordings, for its owner alone.
pub(crate) fn make_folder(folder: &Path) -> io::Result<()> {
    let mut made = fs::DirBuilder::new();
    made.recursive(true).mode(0o700).create(folder)
}

fn private(file: &Path) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(file)
}

/// How many bytes there are below a folder.
fn size_of(folder: &Path) -> io::Result<u64> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    let mut size = 0;
    for entry in entries {
        let entry = entry?;
        size += match entry.metadata()? {
            found if found.is_dir() => size_of(&entry.path())?,
            found => found.len(),
        };
    }
    Ok(size)
}

/// Where a module of recordings is.
#[must_use]
pub fn module_path(folder: &Path, digest: &str) -> PathBuf {
    folder
        .join(MODULES)
        .join(format!("{}.wasm", digest.replace(':', "-")))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn bytes(name: u8, size: usize) -> ModuleBytes {
        vec![name; size].into()
    }

    #[tokio::test]
    async fn what_is_there_already_counts_and_is_for_its_owner_alone() {
        let above = tempfile::TempDir::new().unwrap();
        let folder = above.path().join("recordings");
        let recorder = |max_size| Arc::new(Recorder::new(&folder, max_size).unwrap());
        let kept = |module: &ModuleBytes| module_path(&folder, &module.digest().to_string());
        let (one, two, three) = (bytes(1, 600), bytes(2, 600), bytes(3, 300));
        let first = recorder(1_000);
        first.keep_module(one.clone()).await;
        first.keep_module(two.clone()).await;
        assert!(kept(&one).exists() && !kept(&two).exists());
        let second = recorder(1_000);
        second.keep_module(two.clone()).await;
        assert!(!kept(&two).exists());
        recorder(1_000).keep_module(three.clone()).await;
        assert!(kept(&three).exists());

        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&folder), 0o700);
        assert_eq!(mode(&folder.join(MODULES)), 0o700);
        assert_eq!(mode(&kept(&one)), 0o600);
    }
}
