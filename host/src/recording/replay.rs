//! Makes the calls of recordings again.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use configurator_core::handler::{CallFault, HandlerOutput};
use configurator_guest::log::no_log;
use configurator_guest::module::Module;
use configurator_guest::runtime::GuestRuntime;
use serde_json::Value;

use super::{MODULES, RecordedCall, Recording, VERSION, kept};

/// How exactly a call must give what was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exactness {
    /// Byte for byte: for the module that was recorded.
    Bytes,
    /// The same by what it says, however its documents are written: for another module.
    Values,
}

/// A call that gives something else than what was recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// Which call of the run, from 0.
    pub call: usize,
    /// The phase, or the node's path.
    pub node: String,
    /// The handler.
    pub handler: String,
    /// What it gave, as YAML.
    pub recorded: String,
    /// What it gives now, as YAML.
    pub found: String,
}

/// Why a recording cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct ReadError {
    path: PathBuf,
    reason: String,
}

impl Recording {
    /// The recordings below a folder, in order; or the one that is this file.
    ///
    /// # Errors
    /// When a folder cannot be read.
    pub fn find(path: &Path) -> Result<Vec<PathBuf>, ReadError> {
        let failed = |error: std::io::Error| ReadError {
            path: path.to_owned(),
            reason: error.to_string(),
        };
        if path.is_file() {
            return Ok(vec![path.to_owned()]);
        }
        let mut found = Vec::new();
        for entry in fs::read_dir(path).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let is_modules = path.file_name().is_some_and(|name| name == MODULES);
            if path.is_dir() && !is_modules {
                found.extend(Self::find(&path)?);
            } else if path.extension().is_some_and(|ending| ending == "json") {
                found.push(path);
            }
        }
        found.sort();
        Ok(found)
    }

    /// Reads one.
    ///
    /// # Errors
    /// When the file cannot be read, or is none of this version.
    pub fn read(path: &Path) -> Result<Self, ReadError> {
        let failed = |reason: String| ReadError {
            path: path.to_owned(),
            reason,
        };
        let text = fs::read(path).map_err(|error| failed(error.to_string()))?;
        let recording: Self = serde_json::from_slice(&text)
            .map_err(|error| failed(format!("it is no recording: {error}")))?;
        if recording.version != VERSION {
            return Err(failed(format!(
                "it is of version {}, and this program reads version {VERSION}",
                recording.version
            )));
        }
        Ok(recording)
    }

    /// Makes its calls again, each with what it was given then, and returns those that give something else.
    ///
    /// A limit of time or memory that was or is exceeded depends on the machine, and is no difference.
    #[must_use]
    pub fn replay(
        &self,
        guest: &GuestRuntime,
        module: &Arc<Module>,
        exactness: Exactness,
    ) -> Vec<Difference> {
        let mut differences = Vec::new();
        for (number, recorded) in self.calls.iter().enumerate() {
            let RecordedCall {
                handler,
                input,
                result,
                ..
            } = recorded;
            let report = guest.call_blocking(module, handler, input, &self.limits, no_log());
            let found = kept(report.result);
            let is_same = match exactness {
                _ if of_the_machine(result) || of_the_machine(&found) => true,
                Exactness::Bytes => *result == found,
                Exactness::Values => readable(result) == readable(&found),
            };
            if !is_same {
                differences.push(Difference {
                    call: number,
                    node: input.context.node.clone(),
                    handler: handler.clone(),
                    recorded: yaml(&readable(result)),
                    found: yaml(&readable(&found)),
                });
            }
        }
        differences
    }
}

fn of_the_machine(result: &Result<HandlerOutput, CallFault>) -> bool {
    matches!(
        result,
        Err(CallFault::Deadline { .. } | CallFault::Memory { .. })
    )
}

/// With documents as what they say, and without what is not there.
pub(crate) fn readable(result: &Result<HandlerOutput, CallFault>) -> Value {
    let mut value = match result {
        Ok(output) => serde_json::to_value(output),
        Err(fault) => serde_json::to_value(fault).map(|fault| serde_json::json!({"fault": fault})),
    }
    .unwrap_or(Value::Null);
    open(&mut value);
    value
}

fn open(value: &mut Value) {
    match value {
        Value::String(text) if text.starts_with(['{', '[']) => {
            if let Ok(document) = serde_json::from_str(text) {
                *value = document;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(open),
        Value::Object(fields) => {
            fields.values_mut().for_each(open);
            fields.retain(|_, field| match field {
                Value::Null => false,
                Value::Array(items) => !items.is_empty(),
                Value::Object(fields) => !fields.is_empty(),
                _ => true,
            });
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn yaml(value: &Value) -> String {
    serde_saphyr::to_string(value).unwrap_or_else(|_| value.to_string())
}
