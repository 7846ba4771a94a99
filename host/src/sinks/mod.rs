//! Sinks execute requests at their servers and classify what fails.

pub mod configstore;
pub mod extensions;
#[cfg(feature = "http")]
pub mod http;
pub mod kubernetes;
pub mod partitions;
pub mod secretstore;
mod throttle;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use configurator_background::owners::Owner;
use configurator_core::authorization::AuthorizedOperation;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::partition::Partition;
use configurator_core::request::{ObjectRef, SinkName};
use configurator_core::result::Answer;
use configurator_core::service_account::ServiceAccount;

use self::configstore::{Companion, Fence};
use crate::answers::AnswerRoom;

/// Executes the operations of one server.
///
/// # Guarantees
/// - One call sends an operation once; what is retried, and when, is not decided here.
/// - Every failure comes classified, with what happened and where.
/// - Dropping the future may leave the outcome unknown, but nothing half-written.
#[async_trait]
pub trait Sink: Send + Sync + 'static {
    /// Executes one operation: sends what was authorized, and nothing else.
    async fn execute(
        &self,
        operation: &AuthorizedOperation,
        scope: &Scope,
    ) -> Result<Answer, Fault>;

    /// Whether the server can be reached.
    async fn probe(&self) -> Result<(), Fault>;
}

/// On whose behalf an operation is executed.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// The Configurator's namespace and name.
    pub configurator: ObjectRef,
    /// The part of the stores that is its own.
    pub partition: Partition,
    /// As whom it reaches Kubernetes. `None`: as the host.
    pub service_account: Option<ServiceAccount>,
    /// The Configurator as the owner of work in the background: the `owner` of its calls.
    pub owner: Owner,
    /// The request's name.
    pub request_name: String,
    /// The object that it is made for: `namespace/name`.
    pub object: String,
    /// The attempt of the run that it belongs to; counts from 1.
    pub attempt: u32,
    /// Identifies the effect of an HTTP request, as its `Idempotency-Key`. Empty for a request without one.
    pub idempotency_key: String,
    /// How long one attempt may take; `None`: the sink's own.
    pub timeout: Option<Duration>,
    /// The room for the answer.
    pub answer: AnswerRoom,
    /// What must stand for a write to the config store to come through.
    pub fences: Vec<Fence>,
    /// What is written in the same transaction of the config store.
    pub companion: Companion,
}

/// The sinks of a host.
#[derive(Clone)]
pub struct Sinks {
    /// The Kubernetes API.
    pub kubernetes: Arc<dyn Sink>,
    /// The config store.
    pub configstore: Arc<dyn Sink>,
    /// The secret store.
    pub secretstore: Arc<dyn Sink>,
    /// HTTP endpoints.
    pub http: Arc<dyn Sink>,
    /// The sinks of the embedder.
    pub extension: Arc<dyn Sink>,
}

impl Sinks {
    /// The sink of this name.
    #[must_use]
    pub fn get(&self, name: SinkName) -> &Arc<dyn Sink> {
        match name {
            SinkName::Kubernetes => &self.kubernetes,
            SinkName::Configstore => &self.configstore,
            SinkName::Secretstore => &self.secretstore,
            SinkName::Http => &self.http,
            SinkName::Extension => &self.extension,
        }
    }
}

/// A sink that the host was built without.
#[derive(Debug, Clone, Copy)]
pub struct AbsentSink(pub SinkName);

#[async_trait]
impl Sink for AbsentSink {
    async fn execute(&self, _: &AuthorizedOperation, _: &Scope) -> Result<Answer, Fault> {
        Err(Fault::new(
            FaultKind::UnsupportedResourceOperation,
            format!("this host has no {} sink", self.0),
        ))
    }

    async fn probe(&self) -> Result<(), Fault> {
        Ok(())
    }
}

/// Whether an HTTP request of this method changes nothing (RFC 9110, section 9.2.1).
pub(crate) fn is_safe(method: &str) -> bool {
    matches!(method, "GET" | "HEAD" | "OPTIONS" | "TRACE")
}

/// The fault of an operation that was handed to the wrong sink.
pub(crate) fn misrouted(operation: &AuthorizedOperation, sink: SinkName) -> Fault {
    Fault::new(
        FaultKind::UnsupportedResourceOperation,
        format!(
            "a request for the {} sink came to the {sink} sink",
            operation.sink()
        ),
    )
}
