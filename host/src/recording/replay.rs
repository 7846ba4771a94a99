//! Makes the calls of recordings again.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use configurator_core::handler::{CallFault, CallLimits, HandlerOutput};
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
    /// The same, but for how its documents are written: for another module.
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

/// What has come of making calls again.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Replayed {
    /// The calls that give something else.
    pub differences: Vec<Difference>,
    /// Calls that could not be compared, because a limit of the machine was exceeded.
    pub not_compared: usize,
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

    /// Makes its calls again, each with what it was given then and in an instance of its own, and returns those that give something else.
    ///
    /// A limit of time, memory or stack that was exceeded depends on the machine, and such a call is not compared. Where another module exceeds one that
    /// the recorded one did not, that is a difference.
    #[must_use]
    pub fn replay(
        &self,
        guest: &GuestRuntime,
        module: &Arc<Module>,
        exactness: Exactness,
    ) -> Replayed {
        let mut replayed = Replayed::default();
        let limits = CallLimits {
            instance_calls: 1,
            ..self.limits
        };
        for (number, recorded) in self.calls.iter().enumerate() {
            let RecordedCall {
                handler,
                input,
                result,
                ..
            } = recorded;
            let report = guest.call_blocking(module, handler, input, &limits, no_log());
            let found = kept(report.result);
            let (is_compared, is_same) = match exactness {
                Exactness::Bytes => (
                    !of_the_machine(result) && !of_the_machine(&found),
                    *result == found,
                ),
                Exactness::Values => (!of_the_machine(result), said(result) == said(&found)),
            };
            if !is_compared {
                replayed.not_compared += 1;
            } else if !is_same {
                let (recorded, found) = shown(result, &found);
                replayed.differences.push(Difference {
                    call: number,
                    node: input.context.node.clone(),
                    handler: handler.clone(),
                    recorded,
                    found,
                });
            }
        }
        replayed
    }
}

fn of_the_machine(result: &Result<HandlerOutput, CallFault>) -> bool {
    matches!(
        result,
        Err(CallFault::Deadline { .. }
            | CallFault::Memory { .. }
            | CallFault::Stack { .. }
            | CallFault::Host { .. })
    )
}

/// All of it, with documents as what they say.
pub(crate) fn said(result: &Result<HandlerOutput, CallFault>) -> Value {
    match result {
        Ok(output) => serde_json::to_value(output),
        Err(fault) => serde_json::to_value(fault).map(|fault| serde_json::json!({"fault": fault})),
    }
    .unwrap_or(Value::Null)
}

/// Both as people read them: without what is not there, unless that is the difference.
fn shown(
    recorded: &Result<HandlerOutput, CallFault>,
    found: &Result<HandlerOutput, CallFault>,
) -> (String, String) {
    let both = [recorded, found];
    let [one, other] = both.map(|result| {
        let mut value = said(result);
        open(&mut value);
        yaml(&value)
    });
    if one != other {
        return (one, other);
    }
    let [one, other] = both.map(|result| yaml(&said(result)));
    if one != other {
        return (one, other);
    }
    // Documents that say the same and are written otherwise.
    let [one, other] = both.map(|result| format!("{result:#?}"));
    (one, other)
}

/// Opens texts that are JSON, and leaves out what is empty.
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

#[cfg(test)]
mod tests {
    use configurator_core::document::Document;
    use configurator_core::request::{
        ConfigBasic, ConfigOperation, ConfigRequest, ConfigVerb, KubernetesRequest, KubernetesVerb,
        Operation, Request,
    };

    use super::*;

    fn output(operation: Operation) -> Result<HandlerOutput, CallFault> {
        let mut output = HandlerOutput::default();
        output
            .requests
            .resource_requests
            .push(Request::new("made", operation));
        Ok(output)
    }

    fn patch(body: &str) -> Result<HandlerOutput, CallFault> {
        let mut patch = KubernetesRequest::new(KubernetesVerb::Patch, "", "v1", "configmaps");
        patch.body = Some(Document::parse(body).unwrap());
        output(Operation::Kubernetes(patch))
    }

    fn put(value: &str) -> Result<HandlerOutput, CallFault> {
        output(Operation::Config(ConfigRequest {
            is_transaction: false,
            operations: vec![ConfigOperation::Basic(ConfigBasic {
                verb: ConfigVerb::Update,
                key: "key".into(),
                value: Some(value.into()),
            })],
            partition: None,
        }))
    }

    #[test]
    fn what_is_empty_in_a_document_counts_and_how_it_is_written_does_not() {
        let differ = [
            (r#"{"data":{"x":null}}"#, r#"{"data":{}}"#),
            (r#"{"data":{}}"#, "{}"),
            (r#"{"metadata":{"finalizers":[]}}"#, r#"{"metadata":{}}"#),
            (r#"{"a":"{\"b\":1}"}"#, r#"{"a":"{ \"b\": 1 }"}"#),
        ];
        for (one, other) in differ {
            assert_ne!(said(&patch(one)), said(&patch(other)), "{one} {other}");
        }
        let one = r#"{"a":1,"b":[2]}"#;
        assert_eq!(said(&patch(one)), said(&patch(r#"{"b": [2], "a": 1}"#)));
        assert_ne!(said(&put(one)), said(&put(r#"{"b": [2], "a": 1}"#)));
    }

    #[test]
    fn a_difference_is_always_to_be_seen() {
        let differ = [
            (patch(r#"{"a":1}"#), patch(r#"{"a":2}"#)),
            (patch(r#"{"a":null}"#), patch("{}")),
            (patch(r#"{"a":1,"b":2}"#), patch(r#"{"b":2,"a":1}"#)),
            (put(r#"{"a":1}"#), put(r#"{ "a": 1 }"#)),
            (
                Ok(HandlerOutput {
                    data: Some(Document::null()),
                    ..HandlerOutput::default()
                }),
                Ok(HandlerOutput::default()),
            ),
        ];
        for (one, other) in &differ {
            let (recorded, found) = shown(one, other);
            assert_ne!(recorded, found);
        }
    }
}
