//! Commands: what people, or other controllers, tell machines to do.

use configurator_core::document::Document;
use configurator_core::handler::Signal;
use configurator_core::machine::command::{Command as Order, Verb};
use configurator_core::machine::tree::RecoverFrom;
use configurator_core::request::ObjectRef;
use configurator_core::time::Timestamp;
use futures::{Stream, StreamExt};
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watch_kind};
use kube::{Client, ResourceExt};
use serde_json::json;

use crate::cluster::WatchBackoff;
use crate::resource::command::{Command, CommandPhase, CommandStatus, CommandVerb};
use crate::resource::machine::RecoverFromSpec;

/// Where Commands are that are for objects without a namespace; their Events are there as well.
pub(crate) const CLUSTER_NAMESPACE: &str = "default";

/// Where what belongs to an object of this namespace is, its Commands and its ConfigMap.
pub(crate) fn namespace_beside(namespace: &str) -> &str {
    match namespace {
        "" => CLUSTER_NAMESPACE,
        namespace => namespace,
    }
}

/// The Commands of these namespaces, or of all where there are none, from the start.
pub(crate) fn watched(
    client: &Client,
    namespaces: &[String],
    seed: u64,
) -> impl Stream<Item = watcher::Result<Event<Command>>> + Send + use<> {
    let apis: Vec<Api<Command>> = match namespaces {
        [] => vec![Api::all(client.clone())],
        namespaces => namespaces
            .iter()
            .map(|namespace| Api::namespaced(client.clone(), namespace))
            .collect(),
    };
    let streams = apis.into_iter().map(move |api| {
        let config = watcher::Config::default();
        watch_kind(api, config)
            .backoff(WatchBackoff::new(seed))
            .boxed()
    });
    futures::stream::select_all(streams)
}

/// The resource's own name, the object that it is for, by name and uid, and what it says; nothing if it was dealt with.
pub(crate) fn order_of(command: &Command) -> Option<(ObjectRef, ObjectRef, String, Order)> {
    let is_new = |status: &CommandStatus| status.phase.is_none();
    if !command.status.as_ref().is_none_or(is_new) {
        return None;
    }
    let own = ObjectRef {
        namespace: command.namespace().unwrap_or_default(),
        name: command.name_any(),
    };
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
    Some((own, target, spec.target.uid.clone(), order))
}

/// Says in the status of a Command what became of it. What cannot be said now is said when the Command is seen again.
pub(crate) async fn answer(
    client: &Client,
    resource: &ObjectRef,
    uid: &str,
    refused: Option<&str>,
    now: Timestamp,
) {
    let phase = match refused {
        None => CommandPhase::Done,
        Some(_) => CommandPhase::Refused,
    };
    let status = CommandStatus {
        phase: Some(phase),
        message: refused.unwrap_or_default().to_owned(),
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
