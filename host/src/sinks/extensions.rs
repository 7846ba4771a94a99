//! Sinks that the embedder of a host adds.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use configurator_core::authorization::AuthorizedOperation;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::request::{Operation, SinkName};
use configurator_core::result::Answer;

use super::{Scope, Sink, misrouted};

/// How long one attempt may take when the request does not say.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// The extensions of a host, by name. A request to another name is refused with the names that there are.
#[derive(Clone, Default)]
pub struct Extensions {
    sinks: BTreeMap<String, Arc<dyn Sink>>,
}

impl Extensions {
    /// Adds an extension. One of the same name is replaced.
    pub fn add(&mut self, name: impl Into<String>, sink: Arc<dyn Sink>) {
        self.sinks.insert(name.into(), sink);
    }

    fn get(&self, name: &str) -> Result<&Arc<dyn Sink>, Fault> {
        self.sinks.get(name).ok_or_else(|| {
            let names: Vec<&str> = self.sinks.keys().map(String::as_str).collect();
            let known = match names.as_slice() {
                [] => "it has none".to_owned(),
                names => format!("it has {}", names.join(", ")),
            };
            Fault::new(
                FaultKind::UnsupportedResourceOperation,
                format!("this host has no extension {name:?}: {known}"),
            )
        })
    }
}

#[async_trait]
impl Sink for Extensions {
    async fn execute(
        &self,
        operation: &AuthorizedOperation,
        scope: &Scope,
    ) -> Result<Answer, Fault> {
        let Operation::Extension(request) = operation.operation() else {
            return Err(misrouted(operation, SinkName::Extension));
        };
        let extension = &request.extension;
        let timeout = scope.timeout.unwrap_or(DEFAULT_TIMEOUT);
        let executing = self.get(extension)?.execute(operation, scope);
        match tokio::time::timeout(timeout, executing).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(fault)) => Err(of_extension(fault)),
            Err(_) => Err(Fault::new(
                FaultKind::ExtensionUnavailable,
                format!("the extension {extension:?}: no answer within {timeout:?}"),
            )),
        }
    }

    /// Succeeds: extensions are tried again by the requests to them.
    async fn probe(&self) -> Result<(), Fault> {
        Ok(())
    }
}

/// An extension that reports another server as unavailable means its own: the host must not hold back requests to that one.
fn of_extension(fault: Fault) -> Fault {
    let kind = match fault.kind.sink() {
        Some(_) => FaultKind::ExtensionUnavailable,
        None => fault.kind,
    };
    Fault { kind, ..fault }
}
