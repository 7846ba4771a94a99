//! Scripted failures before the sinks, and scripted HTTP endpoints.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::glob;
use configurator_core::request::Operation;
use configurator_core::result::{Answer, HttpResponse};

use super::scenario::{HttpAnswer, InjectedFault};
use crate::sinks::{Scope, Sink, Sinks, is_safe};

/// The faults of a scenario, with how often each is still to come.
pub(super) struct FaultScript {
    faults: Mutex<Vec<(InjectedFault, Option<u32>)>>,
}

impl FaultScript {
    pub(super) fn new(faults: &[InjectedFault]) -> Arc<Self> {
        let faults = faults
            .iter()
            .map(|fault| (fault.clone(), fault.times))
            .collect();
        Arc::new(Self {
            faults: Mutex::new(faults),
        })
    }

    /// Puts the script before every sink.
    pub(super) fn decorate(self: &Arc<Self>, sinks: Sinks) -> Sinks {
        let wrap = |inner| -> Arc<dyn Sink> {
            Arc::new(FaultySink {
                inner,
                script: self.clone(),
            })
        };
        Sinks {
            kubernetes: wrap(sinks.kubernetes),
            configstore: wrap(sinks.configstore),
            secretstore: wrap(sinks.secretstore),
            http: wrap(sinks.http),
        }
    }

    fn next(&self, scope: &Scope) -> Option<Fault> {
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        let (fault, remaining) = faults.iter_mut().find(|(fault, remaining)| {
            glob::matches(&fault.request, &scope.request_name)
                && glob::matches(&fault.object, &scope.object)
                && (fault.attempts.is_empty() || fault.attempts.contains(&scope.attempt))
                && *remaining != Some(0)
        })?;
        if let Some(remaining) = remaining {
            *remaining -= 1;
        }
        let mut injected = Fault::new(fault.kind, fault.message.clone());
        injected.status = fault.status;
        injected.retry_after = fault.retry_after.map(Into::into);
        Some(injected)
    }
}

struct FaultySink {
    inner: Arc<dyn Sink>,
    script: Arc<FaultScript>,
}

#[async_trait]
impl Sink for FaultySink {
    async fn execute(&self, operation: &Operation, scope: &Scope) -> Result<Answer, Fault> {
        match self.script.next(scope) {
            Some(fault) => Err(fault),
            None => self.inner.execute(operation, scope).await,
        }
    }

    async fn probe(&self) -> Result<(), Fault> {
        self.inner.probe().await
    }
}

/// HTTP endpoints that answer what the scenario says.
pub(super) struct ScriptedHttp {
    pub(super) answers: Vec<HttpAnswer>,
}

#[async_trait]
impl Sink for ScriptedHttp {
    async fn execute(&self, operation: &Operation, _: &Scope) -> Result<Answer, Fault> {
        let Operation::Http(request) = operation else {
            return Err(Fault::new(
                FaultKind::UnsupportedResourceOperation,
                "not an HTTP request",
            ));
        };
        let found = self.answers.iter().find(|answer| {
            glob::matches(&answer.method, &request.method)
                && glob::matches(&answer.url, &request.url)
        });
        let Some(answer) = found else {
            let message = format!(
                "the scenario has no answer for {} {}",
                request.method, request.url
            );
            return Err(Fault::new(FaultKind::ResourceGeneric, message));
        };
        let headers = answer
            .headers
            .iter()
            .map(|(name, value)| (name.to_lowercase(), value.clone()))
            .collect();
        let response = HttpResponse {
            status: answer.status,
            headers,
            body: answer.body.clone().into_bytes(),
        };
        Ok(Answer {
            query_objects: Vec::new(),
            http_response: Some(response),
            changed: !is_safe(&request.method),
        })
    }

    async fn probe(&self) -> Result<(), Fault> {
        Ok(())
    }
}
