//! Runs as files, from which their calls can be made again bit for bit.

mod parts;
mod recorder;
mod replay;
mod scenario;
mod stand_in;
mod taking;

pub(crate) use self::recorder::make_folder;
pub use self::recorder::{DEFAULT_RECORDINGS, MODULES, RecordError, Recorder, module_path};
pub(crate) use self::replay::said;
pub use self::replay::{Difference, Exactness, ReadError, Replayed};
pub(crate) use self::taking::{Again, Taking};

use configurator_core::desired::Content;
use configurator_core::document::Document;
use configurator_core::handler::{CallFault, CallLimits, HandlerInput, HandlerOutput};
use configurator_core::request::{ObjectRef, Operation};
use configurator_core::result::RequestResult;
use configurator_core::time::Timestamp;
use configurator_guest::digest::Digest;
use serde::{Deserialize, Serialize};

/// The version of the form of recordings.
pub const VERSION: u32 = 1;

/// A run, or the part of one between two rests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Recording {
    /// [`VERSION`].
    pub version: u32,
    /// The namespace and name of the Configurator.
    pub configurator: ObjectRef,
    /// The run's id.
    pub run: String,
    /// When the first handler was called.
    pub time: Timestamp,
    /// The digest of the module: `sha256:` and 64 hexadecimal digits.
    pub module: String,
    /// Limits of each call.
    pub limits: CallLimits,
    /// The objects of the run, as `namespace/name`.
    pub objects: Vec<String>,
    /// The calls, in order.
    pub calls: Vec<RecordedCall>,
    /// What the run came to, in a word.
    pub end: String,
}

/// A call of a handler, and what became of what it asked for.
///
/// Where a secret was in what the handler has seen or returned, this is of a second call, which was given stand-ins of the same length and kinds of
/// characters, and another seed. What it has asked the secret store to keep is there as a digest only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedCall {
    /// The handler.
    pub handler: String,
    /// All that it was given.
    pub input: HandlerInput,
    /// What it has returned.
    pub result: Result<HandlerOutput, CallFault>,
    /// What became of its requests.
    pub results: Vec<RequestResult>,
    /// Whether there are stand-ins.
    pub has_stand_ins: bool,
}

/// What a handler has returned, as recordings have it: without the values of secrets that it has made.
pub fn kept(result: Result<HandlerOutput, CallFault>) -> Result<HandlerOutput, CallFault> {
    let mut output = result?;
    let desired = output.desired.iter_mut();
    let entries = desired.flat_map(|desired| &mut desired.entries);
    let entries = entries.filter_map(|entry| match &mut entry.content {
        Content::Secret(secret) => secret.value.as_mut(),
        Content::Kubernetes(_) | Content::Config(_) => None,
    });
    let requests = output.requests.resource_requests.iter_mut();
    let requests = requests.filter_map(|request| match &mut request.operation {
        Operation::Secret(secret) => secret.value.as_mut(),
        _ => None,
    });
    for value in entries.chain(requests) {
        let digest = Digest::of(value.as_str().as_bytes()).to_string();
        *value = Document::of(&digest).unwrap_or_else(|_| Document::null());
    }
    Ok(output)
}
