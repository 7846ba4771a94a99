//! What a scenario says.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use configurator_core::fault::FaultKind;
use kube::core::Duration;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::SimulatorError;
use crate::objects::text;

/// One test of a module, as it is written in YAML.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Scenario {
    /// The file that it was read from.
    #[serde(skip)]
    pub file: PathBuf,
    /// What it shows, in a sentence.
    #[serde(default)]
    pub description: String,
    /// The Configurator.
    #[serde(default)]
    pub configurator: ConfiguratorSource,
    /// Folders with modules, from the scenario's folder. The simulator's own come after these.
    #[serde(default)]
    pub modules: Vec<PathBuf>,
    /// What the clock shows at the start.
    #[serde(default = "default_start")]
    pub start: String,
    /// The longest that the scenario may take, in virtual time.
    #[serde(default = "default_limit")]
    pub limit: Duration,
    /// Files with objects at the start, from the scenario's folder. They are made before `objects`.
    #[serde(default)]
    pub manifests: Vec<PathBuf>,
    /// Objects at the start. `uid-of(Kind namespace/name)` stands for the uid of an object made before.
    #[serde(default)]
    pub objects: Vec<Value>,
    /// Keys of the config store at the start, as they lie there.
    #[serde(default)]
    pub config: BTreeMap<String, String>,
    /// Secrets at the start.
    #[serde(default)]
    pub secrets: BTreeMap<String, Value>,
    /// What HTTP endpoints answer: the first that fits and was not given often enough.
    #[serde(default)]
    pub http: Vec<HttpAnswer>,
    /// What extensions answer: the first that fits and was not given often enough. The host of the scenario has the extensions that are
    /// named here.
    #[serde(default)]
    pub extensions: Vec<ExtensionAnswer>,
    /// Requests that fail.
    #[serde(default)]
    pub faults: Vec<InjectedFault>,
    /// What happens once everything has settled, one after another.
    #[serde(default)]
    pub steps: Vec<Step>,
    /// What must hold at the end, beside what is recorded in the golden file.
    #[serde(default)]
    pub expect: Expectation,
}

/// The Configurator of a scenario.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum ConfiguratorSource {
    /// Its file, from the scenario's folder. Default: `../configurator.yaml`.
    File(PathBuf),
    /// The manifest itself.
    Manifest(Value),
}

impl Default for ConfiguratorSource {
    fn default() -> Self {
        Self::File("../configurator.yaml".into())
    }
}

/// What an HTTP endpoint answers.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HttpAnswer {
    /// The method; `*` stands for any run of characters.
    #[serde(default = "any")]
    pub method: String,
    /// The URL; `*` stands for any run of characters.
    pub url: String,
    /// The status.
    #[serde(default = "ok")]
    pub status: u16,
    /// The headers.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The body.
    #[serde(default)]
    pub body: String,
    /// How often it is given; absent: as often as it fits.
    #[serde(default)]
    pub times: Option<u32>,
}

/// What an extension answers.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExtensionAnswer {
    /// The name of the extension.
    pub extension: String,
    /// The verb; `*` stands for any run of characters.
    #[serde(default = "any")]
    pub verb: String,
    /// The target; `*` stands for any run of characters.
    #[serde(default = "any")]
    pub target: String,
    /// The objects of the answer.
    #[serde(default)]
    pub objects: Vec<Value>,
    /// How often it is given; absent: as often as it fits.
    #[serde(default)]
    pub times: Option<u32>,
}

/// A request that fails instead of being sent, or is answered with something else.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InjectedFault {
    /// The request's name; `*` stands for any run of characters.
    pub request: String,
    /// The object that it is made for, `namespace/name`; `*` stands for any run of characters.
    #[serde(default = "any", skip_serializing_if = "is_any")]
    pub object: String,
    /// Attempts that fail; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<u32>,
    /// How often it comes before it fails.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub after: u32,
    /// How often it fails in all; absent: as often as it comes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
    /// The kind of fault, as in `docs/errors`. Either this or `answer` is there.
    #[serde(
        default,
        deserialize_with = "fault_kind",
        serialize_with = "fault_name",
        skip_serializing_if = "Option::is_none"
    )]
    pub kind: Option<FaultKind>,
    /// What it is answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<InjectedAnswer>,
    /// What the server says.
    #[serde(
        default = "default_message",
        skip_serializing_if = "is_default_message"
    )]
    pub message: String,
    /// The server's status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// How long the server asks to be left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Duration>,
}

/// An answer that is no failure of the server, and that a handler may not have thought of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum InjectedAnswer {
    /// To a `list`: that there is nothing. To HTTP: no body.
    Empty,
    /// Another writer comes between: after a `get` and before a write it changes the object in a place that nobody else
    /// writes, if there is one. In the stores it has done the same just before. HTTP is answered with 409.
    Conflicting,
}

/// Something that happens.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Step {
    /// The object is made, or changed by server-side apply.
    Apply(Value),
    /// The status of an object that exists changes, as its controller changes it: a merge patch.
    Status(Value),
    /// The object is deleted.
    Delete(ObjectName),
    /// Others write keys of the config store, or delete those without a value.
    Config(BTreeMap<String, Option<String>>),
    /// Others change secrets, or delete those with `null`.
    Secrets(BTreeMap<String, Value>),
    /// Time passes.
    Wait(Duration),
    /// The host stops, other things happen, and another host starts on the same stores.
    Restart {
        /// What happens while there is no host.
        #[serde(default)]
        meanwhile: Vec<Step>,
    },
}

/// Names an object.
#[derive(Debug, Clone, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ObjectName {
    /// As in `apps/v1`.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// Empty for a cluster-scoped object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl ObjectName {
    /// The name that an object says of itself.
    #[must_use]
    pub fn of(object: &Value) -> Self {
        Self {
            api_version: text(object, "/apiVersion").to_owned(),
            kind: text(object, "/kind").to_owned(),
            namespace: text(object, "/metadata/namespace").to_owned(),
            name: text(object, "/metadata/name").to_owned(),
        }
    }
}

/// What must hold at the end.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Expectation {
    /// Objects that exist, with at least these fields.
    #[serde(default)]
    pub objects: Vec<Value>,
    /// Objects that do not exist.
    #[serde(default)]
    pub absent: Vec<ObjectName>,
    /// Keys of the config store with their values; `null`: the key must not exist.
    #[serde(default)]
    pub config: BTreeMap<String, Option<String>>,
    /// Names of secrets that exist.
    #[serde(default)]
    pub secrets: Vec<String>,
    /// Reasons of Events that were published.
    #[serde(default)]
    pub events: Vec<String>,
    /// Objects that were given up, `namespace/name`; absent: none.
    #[serde(default)]
    pub failures: Vec<String>,
}

impl Scenario {
    /// Reads a scenario.
    ///
    /// # Errors
    /// When the file cannot be read, or says something that a scenario does not have.
    pub fn read(file: &Path) -> Result<Self, SimulatorError> {
        let path = file.display().to_string();
        let text = std::fs::read_to_string(file).map_err(|source| SimulatorError::File {
            path: path.clone(),
            source,
        })?;
        let mut scenario: Self =
            serde_saphyr::from_str(&text).map_err(|error| SimulatorError::Malformed {
                path,
                message: error.to_string(),
            })?;
        scenario.file = file.to_owned();
        for fault in &scenario.faults {
            if fault.kind.is_some() == fault.answer.is_some() {
                return Err(SimulatorError::Malformed {
                    path: scenario.file.display().to_string(),
                    message: format!(
                        "faults: that of request {:?} needs either `kind` or `answer`",
                        fault.request
                    ),
                });
            }
        }
        Ok(scenario)
    }

    /// The name: that of the file.
    #[must_use]
    pub fn name(&self) -> String {
        Self::name_of(&self.file)
    }

    /// The name of the scenario that a file holds, whether it can be read or not.
    #[must_use]
    pub fn name_of(file: &Path) -> String {
        file.file_stem()
            .map(|stem| stem.to_string_lossy().into_owned())
            .unwrap_or_default()
    }

    /// A path from the scenario's folder.
    #[must_use]
    pub fn beside(&self, path: &Path) -> PathBuf {
        self.file
            .parent()
            .map(|folder| folder.join(path))
            .unwrap_or_else(|| path.to_owned())
    }

    /// The file with what the scenario did when it was last accepted.
    #[must_use]
    pub fn golden_file(&self) -> PathBuf {
        self.file.with_extension("golden.yaml")
    }

    /// The file of every scenario under a folder, by name: `*.yaml` in folders `scenarios`, or in the folder itself. None of them is read yet.
    ///
    /// # Errors
    /// When a folder cannot be read.
    pub fn files(folder: &Path) -> Result<Vec<PathBuf>, SimulatorError> {
        let mut files = Vec::new();
        collect(folder, folder.ends_with("scenarios"), 0, &mut files)?;
        if files.is_empty() && !folder.ends_with("scenarios") {
            collect(folder, true, 0, &mut files)?;
            files.retain(|file| !file.ends_with("configurator.yaml"));
        }
        files.sort();
        Ok(files)
    }
}

/// How deep folders are looked through.
const MAX_DEPTH: usize = 6;

fn collect(
    folder: &Path,
    counts: bool,
    depth: usize,
    files: &mut Vec<PathBuf>,
) -> Result<(), SimulatorError> {
    let io = |source| SimulatorError::File {
        path: folder.display().to_string(),
        source,
    };
    for entry in std::fs::read_dir(folder).map_err(io)? {
        let path = entry.map_err(io)?.path();
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        if path.is_dir() {
            if depth < MAX_DEPTH
                && !name.starts_with('.')
                && name != "target"
                && name != "node_modules"
            {
                collect(&path, name == "scenarios", depth + 1, files)?;
            }
        } else if counts && name.ends_with(".yaml") && !name.ends_with(".golden.yaml") {
            files.push(path);
        }
    }
    Ok(())
}

fn fault_kind<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<FaultKind>, D::Error> {
    let name = String::deserialize(deserializer)?;
    FaultKind::from_name(&name).map(Some).ok_or_else(|| {
        let known: Vec<&str> = FaultKind::ALL.iter().map(|kind| kind.name()).collect();
        serde::de::Error::custom(format!(
            "{name:?} is no kind of fault; there are: {}",
            known.join(", ")
        ))
    })
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    clippy::ref_option,
    reason = "serde passes it so"
)]
fn fault_name<S: serde::Serializer>(
    kind: &Option<FaultKind>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    kind.map(FaultKind::name).serialize(serializer)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn is_any(pattern: &str) -> bool {
    pattern == any()
}

fn is_default_message(message: &str) -> bool {
    message == default_message()
}

fn default_start() -> String {
    "2026-01-31T08:00:00.000Z".into()
}
fn default_limit() -> Duration {
    std::time::Duration::from_secs(24 * 60 * 60).into()
}
pub(super) fn default_message() -> String {
    "the scenario says so".into()
}
fn any() -> String {
    "*".into()
}
fn ok() -> u16 {
    200
}
