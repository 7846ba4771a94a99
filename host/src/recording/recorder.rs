//! Writes recordings.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use configurator_core::handler::{CallFault, HandlerInput, HandlerOutput};
use configurator_core::result::RequestResult;
use configurator_core::run::Run;
use configurator_core::time::Timestamp;
use configurator_guest::bytes::ModuleBytes;

use super::stand_in::StandIns;
use super::{RecordedCall, Recording, VERSION, kept};

/// How many bytes of recordings are written unless something else is said: 1 GiB.
pub const DEFAULT_RECORDINGS: u64 = 1 << 30;
/// Where the modules of recordings are, in their folder.
pub const MODULES: &str = "modules";

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
    /// Into this folder, which is made with the first of them, with at most so many bytes.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub fn new(folder: impl Into<PathBuf>, max_size: u64) -> Result<Self, RecordError> {
        let folder = folder.into();
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(|error| RecordError {
            folder: folder.clone(),
            reason: error.to_string(),
        })?;
        Ok(Self {
            key,
            max_size,
            records_all: true,
            size: AtomicU64::new(0),
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
    pub fn keep_module(&self, bytes: &ModuleBytes) {
        let path = module_path(&self.folder, &bytes.digest().to_string());
        if path.exists() {
            return;
        }
        if let Err(error) = self.write(&path, bytes) {
            tracing::warn!(path = %path.display(), "a module of recordings is not kept: {error}");
        }
    }

    /// Begins to record a run.
    pub(crate) fn begin<'a>(
        self: &Arc<Self>,
        run: &Run,
        secrets: impl IntoIterator<Item = &'a configurator_core::document::Document>,
        now: Timestamp,
    ) -> Taking {
        let mut stand_ins = StandIns::new(self.key);
        stand_ins.learn(secrets);
        let configurator = run.configurator();
        Taking {
            recorder: self.clone(),
            stand_ins,
            recording: Recording {
                version: VERSION,
                configurator: configurator.name.clone(),
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
            },
        }
    }

    fn keep(&self, recording: &Recording) {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let Recording {
            configurator,
            time,
            run,
            ..
        } = recording;
        // Files of one folder are in the order of their runs.
        let name = format!("{time}-{number:06}-{run}.json").replace(':', "");
        let folder = self.folder.join(configurator);
        let path = folder.join(name);
        let text = serde_json::to_vec_pretty(recording).map_err(io::Error::other);
        let written = text.and_then(|text| {
            let size = text.len() as u64;
            if self
                .size
                .fetch_add(size, Ordering::Relaxed)
                .saturating_add(size)
                > self.max_size
            {
                if !self.is_full.swap(true, Ordering::Relaxed) {
                    tracing::warn!(
                        folder = %self.folder.display(),
                        "there are {} bytes of recordings: no more runs are recorded",
                        self.max_size
                    );
                }
                return Ok(());
            }
            self.write(&path, &text)
        });
        if let Err(error) = written {
            tracing::warn!(path = %path.display(), "a run is not recorded: {error}");
        }
    }

    /// Writes aside and renames, so that nobody reads half of it.
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let aside = self
            .folder
            .join(format!(".{}.{number}", std::process::id()));
        if let Some(above) = path.parent() {
            fs::create_dir_all(above)?;
        }
        let written = fs::write(&aside, bytes).and_then(|()| fs::rename(&aside, path));
        if written.is_err() {
            let _ = fs::remove_file(&aside);
        }
        written
    }
}

/// Where a module of recordings is.
#[must_use]
pub fn module_path(folder: &Path, digest: &str) -> PathBuf {
    folder
        .join(MODULES)
        .join(format!("{}.wasm", digest.replace(':', "-")))
}

/// A recording under way.
pub(crate) struct Taking {
    recorder: Arc<Recorder>,
    stand_ins: StandIns,
    recording: Recording,
}

impl Taking {
    /// What a handler may be shown in the place of this input; `None` where nothing in it is secret.
    pub(crate) fn stand_in(&self, input: &HandlerInput) -> Option<HandlerInput> {
        let mut other = input.clone();
        let results = other.request_results.iter_mut().map(|(_, entry)| entry);
        self.stand_ins.replace_answers(results);
        if let Some(last) = &mut other.last {
            let results = last.request_results.iter_mut().map(|(_, entry)| entry);
            self.stand_ins.replace_answers(results);
        }
        if !self.stand_ins.is_empty() {
            let mut value = serde_json::to_value(&other).ok()?;
            self.stand_ins.replace_in(&mut value);
            other = serde_json::from_value(value).ok()?;
        }
        (other != *input).then_some(other)
    }

    /// A call, as it may be kept.
    pub(crate) fn call(
        &mut self,
        handler: &str,
        input: HandlerInput,
        result: Result<HandlerOutput, CallFault>,
        has_stand_ins: bool,
    ) {
        self.recording.calls.push(RecordedCall {
            handler: handler.to_owned(),
            input,
            result: kept(result),
            results: Vec::new(),
            has_stand_ins,
        });
    }

    /// What became of the requests of the last call.
    pub(crate) fn results(&mut self, results: &[RequestResult]) {
        let is_secret = |result: &&RequestResult| {
            result.sink == configurator_core::request::SinkName::Secretstore
        };
        let secret = results.iter().filter(is_secret);
        self.stand_ins
            .learn(secret.flat_map(|result| &result.query_objects));
        let mut results = results.to_vec();
        for result in &mut results {
            self.stand_ins.replace_answer(result);
        }
        let others = serde_json::to_value(&results).and_then(|mut value| {
            self.stand_ins.replace_in(&mut value);
            serde_json::from_value(value)
        });
        if let (Some(call), Ok(others)) = (self.recording.calls.last_mut(), others) {
            call.results = others;
        }
    }

    /// Writes it. A run that called no handler is none worth keeping.
    pub(crate) async fn end(mut self, end: &str) {
        if self.recording.calls.is_empty() {
            return;
        }
        self.recording.end = end.to_owned();
        let written = tokio::task::spawn_blocking(move || self.recorder.keep(&self.recording));
        let _ = written.await;
    }
}
