//! Commands: what people, or other controllers, tell machines to do.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use configurator_core::document::Document;
use configurator_core::handler::Signal;
use configurator_core::machine::command::{Command as Order, Requester, Verb};
use configurator_core::machine::tree::RecoverFrom;
use configurator_core::request::ObjectRef;
use configurator_core::time::Timestamp;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, Stream, StreamExt};
use kube::api::{Api, DeleteParams, Patch, PatchParams, Preconditions};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watch_kind};
use kube::{Client, ResourceExt};
use serde_json::json;

use super::machine_run::MachineContext;
use crate::clock::SharedClock;
use crate::cluster::WatchBackoff;
use crate::resource::command::{
    Command, CommandPhase, CommandStatus, CommandVerb, ConfiguratorKind, ConfiguratorReference,
    RequesterStatus,
};
use crate::resource::machine::RecoverFromSpec;

/// Errands of one worker that are under way.
const ERRANDS_AT_ONCE: usize = 8;
/// Errands that wait until no more Commands are taken.
const MAX_ERRANDS: usize = 1024;
/// The wait before the API is asked again whether an object exists.
const ASK_AGAIN: Duration = Duration::from_secs(5);

/// Where Commands are that are for objects without a namespace; their Events are there as well.
pub(crate) const CLUSTER_NAMESPACE: &str = "default";

/// Where what belongs to an object of this namespace is, its Commands and its ConfigMap.
pub(crate) fn namespace_beside(namespace: &str) -> &str {
    match namespace {
        "" => CLUSTER_NAMESPACE,
        namespace => namespace,
    }
}

/// What happens to Commands, with the namespace that is watched; empty for all.
pub(crate) type CommandEvent = (String, watcher::Result<Event<Command>>);

/// The Commands of these namespaces, or of all where there are none, from the start.
pub(crate) fn watched(
    client: &Client,
    namespaces: &[String],
    seed: u64,
) -> impl Stream<Item = CommandEvent> + Send + use<> {
    let namespaces = match namespaces {
        [] => vec![String::new()],
        namespaces => namespaces.to_vec(),
    };
    let client = client.clone();
    let streams = namespaces.into_iter().map(move |namespace| {
        let api: Api<Command> = match namespace.as_str() {
            "" => Api::all(client.clone()),
            namespace => Api::namespaced(client.clone(), namespace),
        };
        let events = watch_kind(api, watcher::Config::default()).backoff(WatchBackoff::new(seed));
        events.map(move |event| (namespace.clone(), event)).boxed()
    });
    futures::stream::select_all(streams)
}

/// A Command, as answers name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandRef {
    /// Its namespace and name.
    pub(crate) key: ObjectRef,
    /// Its uid.
    pub(crate) uid: String,
    /// Whether the API server checked its requester.
    pub(crate) is_verified: bool,
}

/// A Command that waits for its object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PendingCommand {
    /// The Command itself.
    pub(crate) own: CommandRef,
    /// The object that it is for.
    pub(crate) target: ObjectRef,
    /// The uid of that object.
    pub(crate) target_uid: String,
    /// What to do.
    pub(crate) order: Order,
    /// Whether its status says that it waits.
    pub(crate) is_told: bool,
}

/// The Configurator that a Command names.
pub(crate) fn configurator_of(command: &Command) -> ObjectRef {
    let ConfiguratorReference { kind, name } = command.spec.configurator.clone();
    let namespace = match kind {
        ConfiguratorKind::Configurator => command.namespace().unwrap_or_default(),
        ConfiguratorKind::ClusterConfigurator => String::new(),
    };
    ObjectRef { namespace, name }
}

/// When a Command was finished, if it is.
pub(crate) struct Finished {
    /// The time, as its status states it.
    pub(crate) time: Option<Timestamp>,
    /// How long it wants to be kept.
    pub(crate) ttl: Option<Duration>,
}

/// Returns when a Command was carried out or refused; `None` if it is still to be carried out.
pub(crate) fn finished(command: &Command) -> Option<Finished> {
    let status = command.status.as_ref()?;
    match status.phase? {
        CommandPhase::Pending => None,
        CommandPhase::Done | CommandPhase::Refused => Some(Finished {
            time: status.time.as_ref().and_then(|time| time.parse().ok()),
            ttl: command
                .spec
                .ttl_seconds_after_finished
                .map(|seconds| Duration::from_secs(seconds.into())),
        }),
    }
}

/// The uid of the object that a Command is for, if it states one or a host has looked it up.
pub(crate) fn target_uid(command: &Command) -> Option<&str> {
    let looked_up = || command.status.as_ref()?.target_uid.as_deref();
    command.spec.target.uid.as_deref().or_else(looked_up)
}

/// Reads a Command for this object; `None` if it states nothing that can be carried out.
pub(crate) fn read(
    command: &Command,
    own: CommandRef,
    target: ObjectRef,
    target_uid: &str,
) -> Option<PendingCommand> {
    let spec = &command.spec;
    let verb = match spec.verb {
        CommandVerb::Approve => Verb::Approve,
        CommandVerb::Cancel => Verb::Cancel,
        CommandVerb::Resume => Verb::Resume(spec.from.map(|from| match from {
            RecoverFromSpec::FailedStep => RecoverFrom::FailedStep,
            RecoverFromSpec::FirstStep => RecoverFrom::FirstStep,
        })),
        CommandVerb::Restart => Verb::Restart,
        CommandVerb::Signal => {
            let signal = spec.signal.as_ref()?;
            let data = signal.data.as_ref().map(Document::of).transpose();
            Verb::Signal(Signal {
                name: signal.name.clone(),
                data: data.ok()?,
            })
        }
        CommandVerb::Skip => {
            let skip = spec.skip.as_ref()?;
            Verb::Skip {
                node: skip.node.clone(),
                reason: skip.reason.clone(),
            }
        }
    };
    let status = command.status.as_ref();
    Some(PendingCommand {
        order: Order {
            uid: own.uid.clone(),
            requester: Requester {
                name: spec.requested_by.clone(),
                is_verified: own.is_verified,
            },
            verb,
        },
        own,
        target,
        target_uid: target_uid.to_owned(),
        is_told: status.is_some_and(|status| status.phase.is_some()),
    })
}

/// What became of a Command.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Answer<'a> {
    /// It was carried out.
    Done,
    /// It was not, for this reason.
    Refused(&'a str),
    /// It waits, for this.
    Pending(&'a str),
}

/// Says in the status of a Command what became of it. What cannot be said now is said when the Command is seen again.
pub(crate) async fn answer(
    client: &Client,
    command: &CommandRef,
    answer: Answer<'_>,
    now: Timestamp,
) {
    let (phase, message) = match answer {
        Answer::Done => (CommandPhase::Done, ""),
        Answer::Refused(why) => (CommandPhase::Refused, why),
        Answer::Pending(why) => (CommandPhase::Pending, why),
    };
    let status = CommandStatus {
        phase: Some(phase),
        message: message.to_owned(),
        time: Some(now.to_string()),
        requester: Some(match command.is_verified {
            true => RequesterStatus::Verified,
            false => RequesterStatus::Unverified,
        }),
        target_uid: None,
    };
    let body = json!({"metadata": {"uid": command.uid}, "status": status});
    patch_status(client, &command.key, &body).await;
}

/// Merges this into a Command. A Command that was deleted, or has changed meanwhile, is left as it is.
async fn patch_status(client: &Client, key: &ObjectRef, body: &serde_json::Value) {
    let api: Api<Command> = Api::namespaced(client.clone(), &key.namespace);
    let params = PatchParams::default();
    match api
        .patch_status(&key.name, &params, &Patch::Merge(body))
        .await
    {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409 | 422) => {}
        Err(error) => {
            tracing::warn!(command = %key, %error, "the status of a Command could not be written");
        }
    }
}

/// Something that is to be asked of the API, or told it, about a Command.
#[derive(Debug)]
pub(crate) enum Errand {
    /// Whether the object of this identity exists; the Command's uid comes first.
    Ask(String, ObjectRef, String),
    /// A Command was refused for this reason.
    Refuse(CommandRef, String),
    /// A Command waits for this.
    Wait(CommandRef, String),
    /// The uid of this object is written into the status of a Command that has this version.
    LookUp(CommandRef, String, ObjectRef),
    /// A Command, by name and uid, has been finished for long enough.
    Delete(ObjectRef, String),
}

/// Runs errands beside a worker's loop, some at a time.
pub(crate) struct Errands {
    client: Client,
    machine: Option<Arc<MachineContext>>,
    clock: SharedClock,
    waiting: VecDeque<Errand>,
    under_way: FuturesUnordered<BoxFuture<'static, Option<(String, bool)>>>,
}

impl Errands {
    pub(crate) fn new(
        client: Client,
        machine: Option<Arc<MachineContext>>,
        clock: SharedClock,
    ) -> Self {
        Self {
            client,
            machine,
            clock,
            waiting: VecDeque::new(),
            under_way: FuturesUnordered::new(),
        }
    }

    pub(crate) fn push(&mut self, errand: Errand) {
        self.waiting.push_back(errand);
        self.begin();
    }

    /// Whether so many wait that no more Commands should be taken.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() >= MAX_ERRANDS
    }

    /// Returns, for the Command of a uid that was asked for, whether its object exists. Never returns without errands.
    pub(crate) async fn next(&mut self) -> (String, bool) {
        loop {
            match self.under_way.next().await {
                Some(answered) => {
                    self.begin();
                    if let Some(answered) = answered {
                        return answered;
                    }
                }
                None => std::future::pending().await,
            }
        }
    }

    fn begin(&mut self) {
        while self.under_way.len() < ERRANDS_AT_ONCE {
            let Some(errand) = self.waiting.pop_front() else {
                return;
            };
            let run = run(
                errand,
                self.client.clone(),
                self.machine.clone(),
                self.clock.clone(),
            );
            self.under_way.push(run.boxed());
        }
    }
}

async fn run(
    errand: Errand,
    client: Client,
    machine: Option<Arc<MachineContext>>,
    clock: SharedClock,
) -> Option<(String, bool)> {
    match errand {
        Errand::Ask(command, target, uid) => {
            let machine = machine?;
            loop {
                match machine.store.object(&target, &uid).await {
                    Ok(found) => return Some((command, found.is_some())),
                    Err(fault) => {
                        tracing::debug!(%fault, "whether the object of a Command exists is asked again");
                        clock.sleep(ASK_AGAIN).await;
                    }
                }
            }
        }
        Errand::Refuse(command, why) => {
            answer(&client, &command, Answer::Refused(&why), clock.now()).await;
        }
        Errand::Wait(command, why) => {
            answer(&client, &command, Answer::Pending(&why), clock.now()).await;
        }
        Errand::LookUp(command, version, target) => {
            let machine = machine?;
            let uid = loop {
                match machine.store.uid(&target).await {
                    Ok(uid) => break uid,
                    Err(fault) => {
                        tracing::debug!(%fault, "the host asks again for the object of a Command");
                        clock.sleep(ASK_AGAIN).await;
                    }
                }
            };
            let Some(uid) = uid else {
                let why = format!("there is no {} {target}", machine.store.kind());
                answer(&client, &command, Answer::Refused(&why), clock.now()).await;
                return None;
            };
            // Of two hosts, or two events, the first one decides: the version changes with the status.
            let body = json!({
                "metadata": {"uid": command.uid, "resourceVersion": version},
                "status": {"targetUid": uid},
            });
            patch_status(&client, &command.key, &body).await;
        }
        Errand::Delete(own, uid) => {
            let api: Api<Command> = Api::namespaced(client, &own.namespace);
            let params = DeleteParams::default().preconditions(Preconditions {
                uid: Some(uid),
                resource_version: None,
            });
            match api.delete(&own.name, &params).await {
                Ok(_) => {}
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
                Err(error) => {
                    tracing::warn!(command = %own, %error, "a finished Command could not be deleted; it is tried again after the next listing");
                }
            }
        }
    }
    None
}
