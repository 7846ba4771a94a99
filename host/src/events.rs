//! Kubernetes Events about watched objects and Configurators.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use tokio::sync::mpsc;

use configurator_core::configurator::Configurator;
use configurator_core::request::{ObjectRef, api_version};

use crate::metrics::Metrics;
use crate::resource::kind_of;

/// Events that may wait to be published; what comes on top is dropped and counted.
pub const QUEUE: usize = 1024;
/// The longest note that the API accepts, in bytes.
const MAX_NOTE: usize = 1024;
/// The API server's limit of an action.
const MAX_ACTION: usize = 128;
/// The action of Events that are not about one in particular.
pub(crate) const CONFIGURE: &str = "Configure";

/// An object that an Event is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// As in `apps/v1`.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// Names the object.
    pub key: ObjectRef,
    /// Its identity.
    pub uid: String,
}

impl Subject {
    /// An object that the Configurator watches.
    #[must_use]
    pub fn watched(configurator: &Configurator, key: &ObjectRef, uid: &str) -> Self {
        let watch = &configurator.watch;
        Self {
            api_version: api_version(&watch.group, &watch.version),
            kind: watch.kind.clone(),
            key: key.clone(),
            uid: uid.to_owned(),
        }
    }

    /// A Configurator itself.
    #[must_use]
    pub fn configurator(key: &ObjectRef, uid: &str) -> Self {
        let kind = kind_of(key);
        Self {
            api_version: kind.api_version,
            kind: kind.kind,
            key: key.clone(),
            uid: uid.to_owned(),
        }
    }

    fn reference(&self) -> ObjectReference {
        ObjectReference {
            api_version: Some(self.api_version.clone()),
            kind: Some(self.kind.clone()),
            name: Some(self.key.name.clone()),
            namespace: (!self.key.namespace.is_empty()).then(|| self.key.namespace.clone()),
            uid: Some(self.uid.clone()),
            ..ObjectReference::default()
        }
    }
}

/// An Event that the host publishes. Holds no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostEvent {
    /// What it is about.
    pub subject: Subject,
    /// Whether something is wrong.
    pub is_warning: bool,
    /// One CamelCase word.
    pub reason: String,
    /// What was done, or to what: Events that have it in common too are one series, of which the first message is kept. Cut at 128 bytes.
    pub action: String,
    /// For a person; cut at 1,024 bytes.
    pub message: String,
}

impl HostEvent {
    /// An Event that something is wrong.
    #[must_use]
    pub fn warning(subject: Subject, reason: &str, message: String) -> Self {
        Self {
            subject,
            is_warning: true,
            reason: reason.to_owned(),
            action: CONFIGURE.to_owned(),
            message,
        }
    }
}

/// Publishes Events without making anyone wait.
#[derive(Clone)]
pub struct Publisher {
    queue: mpsc::Sender<HostEvent>,
    metrics: Arc<Metrics>,
}

impl Publisher {
    /// A publisher, and the queue that [`publish`] empties.
    #[must_use]
    pub fn new(metrics: Arc<Metrics>) -> (Self, mpsc::Receiver<HostEvent>) {
        let (queue, events) = mpsc::channel(QUEUE);
        (Self { queue, metrics }, events)
    }

    /// Puts the Event into the queue; drops and counts it when the queue is full.
    pub fn publish(&self, event: HostEvent) {
        if self.queue.try_send(event).is_err() {
            self.metrics.event_dropped();
        }
    }
}

/// Publishes what comes through the queue until every [`Publisher`] is gone. An Event that cannot be published is
/// logged and forgotten.
pub async fn publish(client: Client, mut events: mpsc::Receiver<HostEvent>) {
    let recorder = Recorder::new(
        client,
        Reporter {
            controller: "configurator".into(),
            instance: None,
        },
    );
    while let Some(event) = events.recv().await {
        let HostEvent {
            subject,
            is_warning,
            reason,
            action,
            message,
        } = event;
        let published = Event {
            type_: if is_warning {
                EventType::Warning
            } else {
                EventType::Normal
            },
            reason,
            note: Some(cut(message, MAX_NOTE)),
            action: cut(action, MAX_ACTION),
            secondary: None,
        };
        if let Err(error) = recorder.publish(&published, &subject.reference()).await {
            tracing::debug!(%error, object = %subject.key, "an Event could not be published");
        }
    }
}

fn cut(mut message: String, most: usize) -> String {
    if message.len() > most {
        let end = (0..=most - 3)
            .rev()
            .find(|at| message.is_char_boundary(*at))
            .unwrap_or_default();
        message.truncate(end);
        message.push('…');
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_note_is_cut_between_characters() {
        let cut = cut("日".repeat(1000), MAX_NOTE);
        assert!(cut.len() <= MAX_NOTE);
        assert!(cut.ends_with("日…"));
    }
}
