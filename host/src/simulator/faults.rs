//! Scripted failures before the sinks, and scripted HTTP endpoints.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::glob;
use configurator_core::request::Operation;
use configurator_core::result::{Answer, HttpResponse};

use super::scenario::{HttpAnswer, InjectedFault};
use crate::sinks::{Scope, Sink, Sinks, is_safe};

/// The faults of a scenario, as they are still to come.
pub(super) struct FaultScript {
    faults: Mutex<Vec<InjectedFault>>,
}

impl FaultScript {
    pub(super) fn new(faults: &[InjectedFault]) -> Arc<Self> {
        Arc::new(Self {
            faults: Mutex::new(faults.to_vec()),
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
        let fault = faults.iter_mut().find(|fault| {
            glob::matches(&fault.request, &scope.request_name)
                && glob::matches(&fault.object, &scope.object)
                && (fault.attempts.is_empty() || fault.attempts.contains(&scope.attempt))
                && fault.times != Some(0)
        })?;
        if fault.after > 0 {
            fault.after -= 1;
            return None;
        }
        if let Some(times) = &mut fault.times {
            *times -= 1;
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

/// HTTP endpoints that answer what the scenario says, as far as it is still to come.
#[derive(Clone)]
pub(super) struct ScriptedHttp {
    answers: Arc<Mutex<Vec<HttpAnswer>>>,
}

impl ScriptedHttp {
    pub(super) fn new(answers: &[HttpAnswer]) -> Self {
        Self {
            answers: Arc::new(Mutex::new(answers.to_vec())),
        }
    }

    fn next(&self, method: &str, url: &str) -> Option<HttpAnswer> {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = answers.iter_mut().find(|answer| {
            answer.times != Some(0)
                && glob::matches(&answer.method, method)
                && glob::matches(&answer.url, url)
        })?;
        if let Some(times) = &mut answer.times {
            *times -= 1;
        }
        Some(answer.clone())
    }
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
        let Some(answer) = self.next(&request.method, &request.url) else {
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
