//! What a module is, what its handlers get and what they return. The types mirror `wit/handler.wit`.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::desired::{DesiredSet, PipelinePlan};
use crate::document::Document;
use crate::request::{ObjectKey, ObjectRef, Request, Requests};
use crate::result::ResultEntry;
use crate::time::Timestamp;

/// Why an object is in the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum WatchEvent {
    /// It appeared, or the host met it for the first time.
    Added,
    /// It changed.
    Modified,
    /// It is gone.
    Deleted,
    /// Nothing happened for a while.
    Resync,
}

impl WatchEvent {
    /// The name in messages and in `spec.watch.events`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Added => "Added",
            Self::Modified => "Modified",
            Self::Deleted => "Deleted",
            Self::Resync => "Resync",
        }
    }
}

/// One object of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WatchedObject {
    /// The object, projected.
    pub object: Document,
    /// Why it is in the run.
    pub event: WatchEvent,
}

/// The object or objects that a run is about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ResourceObject {
    /// One object.
    One(WatchedObject),
    /// A batch; never empty.
    Batch(Vec<WatchedObject>),
}

/// A message to a waiting handler.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signal {
    /// The signal's name.
    pub name: String,
    /// What it carries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Document>,
}

/// Why the handler is called now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Cause {
    /// The first call in this phase.
    Entered,
    /// The previous attempt failed.
    Retry,
    /// The previous call ended with `again`.
    Again,
    /// The time named in `wait` has come.
    Timer,
    /// A signal named in `wait` has come.
    Signal(Signal),
    /// An object named in `wait` has changed.
    Changed(ObjectKey),
    /// The host restarted or another took over.
    Recovered,
}

/// Facts about one call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Context {
    /// The name of the Configurator.
    pub configurator: String,
    /// The phase's name.
    pub phase: String,
    /// Path of the handler's node; the phase's name where there is no tree.
    pub node: String,
    /// Counts from 1.
    pub entry: u32,
    /// Counts from 1; a retry adds one.
    pub attempt: u32,
    /// Why the handler is called.
    pub cause: Cause,
    /// When this entry began.
    pub now: Timestamp,
    /// Chance for the handler.
    pub seed: u64,
    /// `spec.parameters`, overlaid with those of the node.
    pub parameters: Document,
    /// Stable for one run of one object.
    pub run_id: String,
}

/// What the previous entry of a handler left behind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HandlerState {
    /// When it was first entered.
    pub start_time: Option<Timestamp>,
    /// When it ended.
    pub end_time: Option<Timestamp>,
    /// Whether its work is complete.
    pub done: bool,
    /// Whether it failed.
    pub failed: bool,
    /// Whether the failure is final.
    pub fatal: bool,
    /// What it failed with.
    pub error: Option<HandlerError>,
    /// The handler's own notes.
    pub data: Option<Document>,
    /// What became of the requests of the previous entry.
    pub request_results: Vec<(String, ResultEntry)>,
}

/// Everything that a handler sees.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HandlerInput {
    /// The object or objects.
    pub resource_object: ResourceObject,
    /// Of the previous phase, in request order.
    pub request_results: Vec<(String, ResultEntry)>,
    /// What the previous phase passed on.
    pub pass_through_args: Vec<(String, Document)>,
    /// Only when the handler is entered again.
    pub last: Option<HandlerState>,
    /// What earlier steps of a flow left.
    pub outputs: Vec<(String, Document)>,
    /// In a pipeline: what the handlers before this one planned.
    pub plan: Option<PipelinePlan>,
    /// Facts about the call.
    pub context: Context,
}

/// When a waiting handler is entered again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Wake {
    /// After this long.
    pub after: Option<Duration>,
    /// At one of these signals.
    pub signals: Vec<String>,
    /// When one of these objects changes.
    pub objects: Vec<ObjectKey>,
}

/// How a call ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// The handler's work is complete.
    #[default]
    Done,
    /// Enter it again after this long.
    Again(Option<Duration>),
    /// Leave memory; enter it again at the first of these.
    Wait(Wake),
    /// As an error, but statuses and events are kept.
    Failed(HandlerError),
    /// In a pipeline: the handlers after this one are not called.
    Stop,
}

/// How far a handler has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// 0 to 100.
    pub percent: u8,
    /// For a person.
    pub message: String,
}

/// How loud an Event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EventType {
    /// For information.
    Normal,
    /// Something is wrong.
    Warning,
}

/// Fields for the object's status.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusUpdate {
    /// In a batch, the object.
    pub of: Option<ObjectRef>,
    /// The fields.
    pub status: Document,
}

/// A Kubernetes Event about the object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// In a batch, the object.
    pub of: Option<ObjectRef>,
    /// How loud it is.
    pub event_type: EventType,
    /// One CamelCase word.
    pub reason: String,
    /// For a person.
    pub message: String,
}

/// What a handler decided.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HandlerOutput {
    /// What to do.
    pub requests: Requests,
    /// What the next phase gets.
    pub pass_through_args: Vec<(String, Document)>,
    /// How the call ended.
    pub outcome: Outcome,
    /// Go to this phase whatever the transitions say.
    pub next: Option<String>,
    /// Fields for the status of the object.
    pub statuses: Vec<StatusUpdate>,
    /// The handler's own notes.
    pub data: Option<Document>,
    /// Events about the object.
    pub events: Vec<Event>,
    /// How far it has come.
    pub progress: Option<Progress>,
    /// For later steps of the flow.
    pub output: Option<Document>,
    /// What a person sees.
    pub details: Option<Document>,
    /// All members that the owner is to have.
    pub desired: Option<DesiredSet>,
    /// In a pipeline: names of requests and entries that the plan loses.
    pub remove_from_plan: Vec<String>,
    /// In a pipeline, with [`Outcome::Again`]: requests that only read.
    pub reads: Vec<Request>,
}

/// A handler could not decide.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[error("{message}")]
pub struct HandlerError {
    /// What happened, for a person.
    pub message: String,
    /// Fails the phase at once; any other is retried.
    pub fatal: bool,
    /// For one that is not fatal. `None`: the configurator's backoff.
    pub retry_after: Option<Duration>,
    /// Looked up in `errorCodes`.
    pub code: Option<String>,
}

/// What a person sees for a handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum View {
    /// Nothing.
    #[default]
    None,
    /// A list of checks.
    CheckList,
    /// Details of an object.
    ObjectDetail,
}

/// Whether a handler takes one object or many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepts {
    /// One.
    One,
    /// Many.
    Batch,
    /// Both.
    Either,
}

/// What a module says of one handler.
#[derive(Debug, Clone, PartialEq)]
pub struct HandlerDescription {
    /// The handler's name.
    pub name: String,
    /// For a person.
    pub description: String,
    /// What a person sees.
    pub view: View,
    /// One object or many.
    pub accepts: Accepts,
    /// JSON Schema of `spec.parameters`.
    pub parameters_schema: Option<Document>,
    /// What it may ask for at most, in the form of `spec.capabilities`; absent where it says nothing.
    pub capabilities: Option<Document>,
}

/// What a module says of itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModuleDescription {
    /// Its handlers.
    pub handlers: Vec<HandlerDescription>,
}

impl ModuleDescription {
    /// The handler of this name.
    #[must_use]
    pub fn handler(&self, name: &str) -> Option<&HandlerDescription> {
        self.handlers.iter().find(|handler| handler.name == name)
    }
}

/// Default size of the status that handlers may give an object, in bytes: 64 KiB. Every client that watches the object receives it.
pub const DEFAULT_MAX_STATUS_SIZE: u64 = 64 << 10;

const fn default_status_size() -> u64 {
    DEFAULT_MAX_STATUS_SIZE
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
const fn is_default_status_size(size: &u64) -> bool {
    *size == DEFAULT_MAX_STATUS_SIZE
}

/// Limits of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallLimits {
    /// CPU time of the guest's thread. Wall time is capped at ten times this.
    pub deadline: Duration,
    /// Linear memory, in bytes.
    pub memory: u64,
    /// Size of the whole input, in bytes.
    pub input_size: u64,
    /// Size of the whole output, in bytes.
    pub output_size: u64,
    /// Size of the status of one object, in bytes. Default: [`DEFAULT_MAX_STATUS_SIZE`].
    #[serde(
        default = "default_status_size",
        skip_serializing_if = "is_default_status_size"
    )]
    pub status_size: u64,
    /// Calls that one instance may serve. 1: every call has an instance of its own, and sees nothing of the calls before it.
    pub instance_calls: u32,
    /// Whose calls they are: an instance never serves those of two, since what one may read the other may not.
    #[serde(skip)]
    pub owner: u128,
    /// Identifies the group whose owners share CPU time: the Configurators of a namespace.
    #[serde(skip)]
    pub group: u128,
    /// The share of the group relative to other groups. At least 1.
    #[serde(skip)]
    pub weight: u32,
    /// Identifies the owner's objects that a call is for. The host expects the next call for the same objects to take as long.
    #[serde(skip)]
    pub objects: u64,
    /// Whether other calls of the owner, which do not yield, go first.
    #[serde(skip)]
    pub yields: bool,
}

impl CallLimits {
    /// These, for calls of the Configurator of this uid.
    #[must_use]
    pub fn owned_by(self, uid: &str) -> Self {
        let owner = number(uid);
        Self {
            owner,
            group: owner,
            ..self
        }
    }

    /// Returns these limits for a Configurator of this namespace, which shares its CPU time with the others there. A ClusterConfigurator, whose
    /// namespace is empty, shares it with nobody.
    #[must_use]
    pub fn shared_in(self, namespace: &str) -> Self {
        match namespace {
            "" => self,
            namespace => Self {
                group: number(namespace),
                ..self
            },
        }
    }

    /// Returns these limits for a call that is for the objects with these uids.
    #[must_use]
    pub fn called_for<'a>(self, uids: impl IntoIterator<Item = &'a str>) -> Self {
        let mut hash = DefaultHasher::new();
        uids.into_iter().for_each(|uid| uid.hash(&mut hash));
        Self {
            objects: hash.finish(),
            ..self
        }
    }
}

/// Returns a number that identifies a text.
fn number(text: &str) -> u128 {
    let digest = Sha256::digest(text.as_bytes());
    let bytes = digest.iter().take(16);
    bytes.fold(0, |number, byte| (number << 8) | u128::from(*byte))
}

impl Default for CallLimits {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(1),
            memory: 64 << 20,
            input_size: 4 << 20,
            output_size: 1 << 20,
            status_size: DEFAULT_MAX_STATUS_SIZE,
            instance_calls: 1,
            owner: 0,
            group: 0,
            weight: 1,
            objects: 0,
            yields: false,
        }
    }
}

/// Why a call gave no output.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CallFault {
    /// The handler returned an error.
    #[error("the handler returned an error: {0}")]
    Handler(HandlerError),
    /// The guest trapped; the message carries the end of its log.
    #[error("the handler trapped: {message}")]
    Trap {
        /// The trap, where it happened, and the last of the guest's log and stderr.
        message: String,
    },
    /// The guest used up its CPU time, or ten times that in wall time.
    #[error("the handler passed its deadline of {deadline:?}: {message}")]
    Deadline {
        /// `limits.deadline`.
        deadline: Duration,
        /// Which clock, and the last of the guest's log.
        message: String,
    },
    /// The guest asked for more memory than `limits.memory`.
    #[error("the handler passed its memory limit of {limit} bytes: {message}")]
    Memory {
        /// `limits.memory`, in bytes.
        limit: u64,
        /// The last of the guest's log.
        message: String,
    },
    /// The guest's stack overflowed.
    #[error("the handler's stack overflowed: {message}")]
    Stack {
        /// The last of the guest's log.
        message: String,
    },
    /// The input passes `limits.inputSize`; the handler was not called.
    #[error("the input has {size} bytes; limits.inputSize allows {limit}")]
    InputTooLarge {
        /// Bytes of the input.
        size: u64,
        /// `limits.inputSize`.
        limit: u64,
    },
    /// The output passes `limits.outputSize`.
    #[error("the output has {size} bytes or more; limits.outputSize allows {limit}")]
    OutputTooLarge {
        /// Bytes of the output, as far as they were counted.
        size: u64,
        /// `limits.outputSize`.
        limit: u64,
    },
    /// A status passes the host's `max_status_size`.
    #[error("a status has {size} bytes; the host's setting max_status_size allows {limit}")]
    StatusTooLarge {
        /// Bytes of the status.
        size: u64,
        /// `max_status_size`.
        limit: u64,
    },
    /// The output is not what the protocol allows.
    #[error("the output is invalid: {message}")]
    InvalidOutput {
        /// What is wrong, and where.
        message: String,
    },
    /// The module has no handler of this name.
    #[error("the module has no handler {name:?}; it has: {available}")]
    UnknownHandler {
        /// The name that was asked for.
        name: String,
        /// The names that there are, separated by commas.
        available: String,
    },
    /// The host itself could not make the call; nothing is wrong with the module.
    #[error("the host could not make the call: {message}")]
    Host {
        /// What happened.
        message: String,
    },
}
