//! What a scenario came to, and whether that is what it should be.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value, json};
use similar::TextDiff;

use super::SimulatorError;
use super::scenario::Scenario;
use crate::observer::Notice;

/// What a scenario came to.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Each run in the order in which they began: objects, calls with their requests, ends.
    pub runs: Vec<Value>,
    /// Objects that handlers wrote, or that are members of sets, and that exist at the end, without what the server and the host keep for
    /// themselves.
    pub objects: Vec<Value>,
    /// The sets that are there at the end: the status of each `ObjectSet`, without its conditions.
    pub sets: Vec<Value>,
    /// Keys of the config store with their values.
    pub config: BTreeMap<String, String>,
    /// Names of secrets.
    pub secrets: Vec<String>,
    /// Events that were published: reason and note, sorted.
    pub events: Vec<String>,
    /// Objects that were given up, with the reason.
    pub failures: BTreeMap<String, String>,
    /// What was said of the Configurator.
    pub notices: Vec<Notice>,
    /// For each object that the scenario expects, what was found.
    pub(super) expected_objects: Vec<Option<Value>>,
    /// For each object that the scenario expects to be absent, whether it is.
    pub(super) expected_absences: Vec<bool>,
}

impl Outcome {
    /// What is kept in the golden file.
    ///
    /// # Errors
    /// When it cannot be written as YAML.
    pub fn golden(&self) -> Result<String, SimulatorError> {
        let mut golden = Map::new();
        golden.insert("runs".into(), self.runs.clone().into());
        let config: Map<String, Value> = self
            .config
            .iter()
            .map(|(key, value)| (key.clone(), value.as_str().into()))
            .collect();
        let mut end = Map::new();
        end.insert("objects".into(), self.objects.clone().into());
        if !self.sets.is_empty() {
            end.insert("sets".into(), self.sets.clone().into());
        }
        end.insert("config".into(), config.into());
        end.insert("secrets".into(), json!(self.secrets));
        end.insert("events".into(), json!(self.events));
        golden.insert("end".into(), end.into());
        serde_saphyr::to_string(&Value::Object(golden)).map_err(|error| SimulatorError::Malformed {
            path: "the golden file".into(),
            message: error.to_string(),
        })
    }

    /// Everything that is not as the scenario says, and where the golden file differs; empty when all is well.
    ///
    /// # Errors
    /// When the golden file cannot be read.
    pub fn mistakes(&self, scenario: &Scenario) -> Result<Vec<String>, SimulatorError> {
        let mut mistakes = self.unmet(scenario);
        let file = scenario.golden_file();
        let path = file.display().to_string();
        match std::fs::read_to_string(&file) {
            Ok(accepted) => mistakes.extend(difference(&path, &accepted, &self.golden()?)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                mistakes.push(format!(
                    "{path} does not exist; accept what happened with --update"
                ));
            }
            Err(source) => return Err(SimulatorError::File { path, source }),
        }
        Ok(mistakes)
    }

    /// Writes the golden file. Returns whether it changed.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn accept(&self, scenario: &Scenario) -> Result<bool, SimulatorError> {
        let file = scenario.golden_file();
        let golden = self.golden()?;
        if std::fs::read_to_string(&file).is_ok_and(|accepted| accepted == golden) {
            return Ok(false);
        }
        write(&file, &golden)?;
        Ok(true)
    }

    /// What the scenario expects and did not happen.
    #[must_use]
    pub fn unmet(&self, scenario: &Scenario) -> Vec<String> {
        let expect = &scenario.expect;
        let mut unmet = Vec::new();
        let mut waits = None;
        for notice in &self.notices {
            match notice {
                Notice::Refused { reason, message } => {
                    unmet.push(format!("the Configurator was refused: {reason}: {message}"));
                }
                Notice::Waiting { message } => waits = Some(message),
                Notice::Started { .. } => waits = None,
                Notice::Loading { .. }
                | Notice::Swapped { .. }
                | Notice::CanaryStarted { .. }
                | Notice::RolledBack { .. }
                | Notice::Bootstrapped { .. }
                | Notice::Stopped => {}
            }
        }
        if let Some(message) = waits {
            unmet.push(format!("the Configurator does not run: {message}"));
        }
        for (wanted, found) in expect.objects.iter().zip(&self.expected_objects) {
            match found {
                None => unmet.push(format!("the object does not exist: {}", brief(wanted))),
                Some(found) => {
                    let mut paths = Vec::new();
                    lacking(wanted, found, &mut String::new(), &mut paths);
                    unmet.extend(
                        paths
                            .into_iter()
                            .map(|path| format!("{}: {path}", brief(wanted))),
                    );
                }
            }
        }
        for (name, is_absent) in expect.absent.iter().zip(&self.expected_absences) {
            if !is_absent {
                unmet.push(format!(
                    "the object still exists: {} {}/{}",
                    name.kind, name.namespace, name.name
                ));
            }
        }
        for (key, wanted) in &expect.config {
            match (wanted, self.config.get(key)) {
                (None, Some(found)) => unmet.push(format!("the config store has {key}: {found}")),
                (Some(_), None) => unmet.push(format!("the config store has no {key}")),
                (Some(wanted), Some(found)) if wanted != found => {
                    unmet.push(format!("the config store has {key}: {found}, not {wanted}"));
                }
                _ => {}
            }
        }
        for name in &expect.secrets {
            if !self.secrets.contains(name) {
                unmet.push(format!("the secret store has no {name}"));
            }
        }
        for reason in &expect.events {
            if !self
                .events
                .iter()
                .any(|event| event.split(':').next() == Some(reason))
            {
                unmet.push(format!("no Event {reason} was published"));
            }
        }
        for object in &expect.failures {
            if !self.failures.contains_key(object) {
                unmet.push(format!("{object} was not given up"));
            }
        }
        for (object, why) in &self.failures {
            if !expect.failures.contains(object) {
                unmet.push(format!("{object} was given up: {why}"));
            }
        }
        unmet
    }
}

fn write(file: &Path, text: &str) -> Result<(), SimulatorError> {
    std::fs::write(file, text).map_err(|source| SimulatorError::File {
        path: file.display().to_string(),
        source,
    })
}

/// The difference between what was accepted and what happened, if any.
fn difference(path: &str, accepted: &str, happened: &str) -> Option<String> {
    (accepted != happened).then(|| {
        let diff = TextDiff::from_lines(accepted, happened);
        let text = diff
            .unified_diff()
            .context_radius(3)
            .header(path, "what happened")
            .to_string();
        format!("what happened differs from what was accepted:\n{text}")
    })
}

fn brief(object: &Value) -> String {
    let text = |pointer: &str| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    format!(
        "{} {}/{}",
        text("/kind"),
        text("/metadata/namespace"),
        text("/metadata/name")
    )
}

/// The paths at which `found` lacks what is wanted. Lists must be equal in length.
fn lacking(wanted: &Value, found: &Value, path: &mut String, paths: &mut Vec<String>) {
    match (wanted, found) {
        (Value::Object(wanted), Value::Object(found)) => {
            for (name, wanted) in wanted {
                let length = path.len();
                path.push('.');
                path.push_str(name);
                match found.get(name) {
                    Some(found) => lacking(wanted, found, path, paths),
                    None => paths.push(format!("{path} is absent, not {wanted}")),
                }
                path.truncate(length);
            }
        }
        (Value::Array(wanted), Value::Array(found)) if wanted.len() == found.len() => {
            for (index, (wanted, found)) in wanted.iter().zip(found).enumerate() {
                let length = path.len();
                path.push_str(&format!("[{index}]"));
                lacking(wanted, found, path, paths);
                path.truncate(length);
            }
        }
        (wanted, found) if wanted == found => {}
        (wanted, found) => paths.push(format!("{path} is {found}, not {wanted}")),
    }
}
