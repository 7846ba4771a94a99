//! Commands: what people, or other controllers, tell machines to do.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use configurator_core::document::Document;
use configurator_core::handler::Signal;
use configurator_core::machine::command::{Command as Order, Verb};
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
use super::pending::PendingCommand;
use crate::clock::SharedClock;
use crate::cluster::WatchBackoff;
use crate::resource::command::{Command, CommandPhase, CommandStatus, CommandVerb};
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

/// What is known of a Command.
pub(crate) enum Read {
    /// It is to be carried out.
    Order(PendingCommand),
    /// It was dealt with at this time.
    Finished(ObjectRef, String, Option<Timestamp>),
}

/// Reads a Command; `None` where it says nothing that can be carried out.
pub(crate) fn read(command: &Command) -> Option<Read> {
    let own = ObjectRef {
        namespace: command.namespace().unwrap_or_default(),
        name: command.name_any(),
    };
    let phase = command.status.as_ref().and_then(|status| status.phase);
    if let Some(CommandPhase::Done | CommandPhase::Refused) = phase {
        let time = command
            .status
            .as_ref()
            .and_then(|status| status.time.as_ref());
        let time = time.and_then(|time| time.parse().ok());
        return Some(Read::Finished(own, command.uid()?, time));
    }
    let spec = &command.spec;
    let verb = match spec.verb {
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
    let target = ObjectRef {
        namespace: own.namespace.clone(),
        name: spec.target.name.clone(),
    };
    let order = Order {
        uid: command.uid()?,
        by: spec.by.clone(),
        verb,
    };
    Some(Read::Order(PendingCommand {
        own,
        target,
        target_uid: spec.target.uid.clone(),
        order,
        is_told: phase == Some(CommandPhase::Pending),
    }))
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
    resource: &ObjectRef,
    uid: &str,
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
    };
    let api: Api<Command> = Api::namespaced(client.clone(), &resource.namespace);
    let body = json!({"metadata": {"uid": uid}, "status": status});
    let patched = api
        .patch_status(
            &resource.name,
            &PatchParams::default(),
            &Patch::Merge(&body),
        )
        .await;
    match patched {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409 | 422) => {}
        Err(error) => {
            tracing::warn!(command = %resource, %error, "what became of a Command could not be said in its status");
        }
    }
}

/// Something that is to be asked of the API, or told it, about a Command.
#[derive(Debug)]
pub(crate) enum Errand {
    /// Whether the object of this identity exists; the Command's uid comes first.
    Ask(String, ObjectRef, String),
    /// A Command, by name and uid, was refused for this reason.
    Refuse(ObjectRef, String, String),
    /// A Command, by name and uid, waits for this.
    Wait(ObjectRef, String, String),
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
        Errand::Refuse(own, uid, why) => {
            let refused = Answer::Refused(&why);
            answer(&client, &own, &uid, refused, clock.now()).await;
        }
        Errand::Wait(own, uid, why) => {
            let pending = Answer::Pending(&why);
            answer(&client, &own, &uid, pending, clock.now()).await;
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
