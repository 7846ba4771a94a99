//! Scripted failures before the sinks, and scripted HTTP endpoints.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use configurator_core::authorization::AuthorizedOperation;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::glob;
use configurator_core::request::{
    KubernetesRequest, KubernetesVerb, Operation, SinkName, api_version,
};
use configurator_core::result::{Answer, HttpResponse};
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::{Client, ResourceExt as _};
use serde_json::json;

use super::answers::Answers;
use super::scenario::{HttpAnswer, InjectedAnswer, InjectedFault};
use crate::objects;
use crate::sinks::{Scope, Sink, Sinks, is_safe};

/// What a writer who comes between changes.
pub(super) const TOUCHED: &str = "simulator.configurator.dev/touched";

/// The faults of a scenario, as they are still to come.
pub(super) struct FaultScript {
    faults: Mutex<Vec<InjectedFault>>,
    /// What an exploration adds, until the scenario is repeated.
    tried: Mutex<Vec<InjectedFault>>,
    /// In the order in which they came first.
    requests: Mutex<Vec<SeenRequest>>,
    /// Whether everything has been done, so that nothing should change any more.
    is_repeated: AtomicBool,
    client: Client,
}

/// A request that came to the sinks, as far as a fault can name it.
#[derive(Debug, Clone)]
pub(super) struct SeenRequest {
    pub(super) request: String,
    pub(super) object: String,
    pub(super) sink: SinkName,
    /// Whether it can be answered with nothing.
    pub(super) is_list: bool,
    /// Whether another writer can come between.
    pub(super) is_contended: bool,
    /// How often it came before everything was repeated.
    pub(super) times: u32,
    /// Whether it has changed something when everything was repeated.
    pub(super) has_changed: bool,
}

impl FaultScript {
    pub(super) fn new(
        faults: &[InjectedFault],
        tried: &[InjectedFault],
        client: Client,
    ) -> Arc<Self> {
        Arc::new(Self {
            faults: Mutex::new(faults.to_vec()),
            tried: Mutex::new(tried.to_vec()),
            requests: Mutex::default(),
            is_repeated: AtomicBool::new(false),
            client,
        })
    }

    /// What has come so far.
    pub(super) fn requests(&self) -> Vec<SeenRequest> {
        lock(&self.requests).clone()
    }

    /// From now on nothing should change any more, and only the scenario's own faults are met.
    pub(super) fn repeat(&self) {
        lock(&self.tried).clear();
        self.is_repeated.store(true, Ordering::Relaxed);
    }

    fn is_repeated(&self) -> bool {
        self.is_repeated.load(Ordering::Relaxed)
    }

    fn see(&self, operation: &AuthorizedOperation, scope: &Scope, has_changed: bool) {
        let (is_list, is_contended) = match operation.operation() {
            Operation::Kubernetes(own) => {
                let is_list = own.verb == KubernetesVerb::List;
                (is_list, !is_list)
            }
            Operation::Config(_) | Operation::Secret(_) => (false, operation.is_mutating()),
            Operation::Http(_) | Operation::Extension(_) => (true, true),
        };
        let mut requests = lock(&self.requests);
        let known = requests
            .iter()
            .position(|known| known.request == scope.request_name && known.object == scope.object);
        let at = known.unwrap_or_else(|| {
            requests.push(SeenRequest {
                request: scope.request_name.clone(),
                object: scope.object.clone(),
                sink: operation.sink(),
                is_list,
                is_contended,
                times: 0,
                has_changed: false,
            });
            requests.len() - 1
        });
        let is_repeated = self.is_repeated();
        if let Some(known) = requests.get_mut(at) {
            known.times += u32::from(!is_repeated);
            known.has_changed |= is_repeated && has_changed;
        }
    }

    fn objects(&self, request: &KubernetesRequest) -> Api<DynamicObject> {
        let resource = ApiResource {
            group: request.group.clone(),
            version: request.version.clone(),
            api_version: api_version(&request.group, &request.version),
            kind: request.kind.clone(),
            plural: request.plural.clone(),
        };
        objects::of(self.client.clone(), &resource, &request.namespace)
    }

    /// The version of the object that a request may change.
    async fn version(&self, operation: &AuthorizedOperation) -> Option<String> {
        let Operation::Kubernetes(request) = operation.operation() else {
            return None;
        };
        let found = self.objects(request).get_opt(&request.name).await;
        found.ok().flatten()?.resource_version()
    }

    /// Another writer changes the object, if there is one.
    async fn touch(&self, request: &KubernetesRequest) {
        let requests = lock(&self.requests).clone();
        let number: u64 = requests.iter().map(|seen| u64::from(seen.times)).sum();
        let change = json!({"metadata": {"annotations": {TOUCHED: number.to_string()}}});
        // What is not there is not changed.
        let _ = self
            .objects(request)
            .patch(
                &request.name,
                &PatchParams::default(),
                &Patch::Merge(change),
            )
            .await;
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
            extension: wrap(sinks.extension),
        }
    }

    fn next(&self, scope: &Scope) -> Option<Injection> {
        let (mut tried, mut faults) = (lock(&self.tried), lock(&self.faults));
        let all = tried.iter_mut().chain(faults.iter_mut());
        let fitting = all.filter(|fault| {
            glob::matches(&fault.request, &scope.request_name)
                && glob::matches(&fault.object, &scope.object)
                && (fault.attempts.is_empty() || fault.attempts.contains(&scope.attempt))
        });
        // Each of them counts how often the request comes, whatever the others do.
        let mut met = None;
        for fault in fitting {
            if fault.after > 0 {
                fault.after -= 1;
            } else if met.is_none() && fault.times != Some(0) {
                met = Some(fault);
            }
        }
        let fault = met?;
        if let Some(times) = &mut fault.times {
            *times -= 1;
        }
        if let Some(answer) = fault.answer {
            return Some(Injection::Answer(answer));
        }
        let mut injected = Fault::new(fault.kind?, fault.message.clone());
        injected.status = fault.status;
        injected.retry_after = fault.retry_after.map(Into::into);
        Some(Injection::Fault(injected))
    }
}

pub(super) fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

enum Injection {
    Fault(Fault),
    Answer(InjectedAnswer),
}

struct FaultySink {
    inner: Arc<dyn Sink>,
    script: Arc<FaultScript>,
}

impl FaultySink {
    /// Another writer comes between.
    async fn outrun(
        &self,
        operation: &AuthorizedOperation,
        scope: &Scope,
    ) -> Result<Answer, Fault> {
        match operation.operation() {
            Operation::Kubernetes(own) if own.verb == KubernetesVerb::Get => {
                let answer = self.inner.execute(operation, scope).await;
                self.script.touch(own).await;
                answer
            }
            Operation::Kubernetes(own) => {
                self.script.touch(own).await;
                self.inner.execute(operation, scope).await
            }
            Operation::Http(_) => Ok(Answer {
                query_objects: Vec::new(),
                http_response: Some(HttpResponse {
                    status: 409,
                    headers: Vec::new(),
                    body: Vec::new(),
                }),
                changed: false,
            }),
            // The other has done the same.
            Operation::Config(_) | Operation::Secret(_) | Operation::Extension(_) => {
                let _ = self.inner.execute(operation, scope).await;
                self.inner.execute(operation, scope).await
            }
        }
    }
}

#[async_trait]
impl Sink for FaultySink {
    async fn execute(
        &self,
        operation: &AuthorizedOperation,
        scope: &Scope,
    ) -> Result<Answer, Fault> {
        let before = match self.script.is_repeated() {
            true => self.script.version(operation).await,
            false => None,
        };
        let answered = match self.script.next(scope) {
            Some(Injection::Fault(fault)) => Err(fault),
            Some(Injection::Answer(InjectedAnswer::Empty)) => {
                let answer = self.inner.execute(operation, scope).await;
                answer.map(|answer| Answer {
                    query_objects: Vec::new(),
                    http_response: answer.http_response.map(|response| HttpResponse {
                        body: Vec::new(),
                        ..response
                    }),
                    changed: answer.changed,
                })
            }
            Some(Injection::Answer(InjectedAnswer::Conflicting)) => {
                self.outrun(operation, scope).await
            }
            None => self.inner.execute(operation, scope).await,
        };
        let has_changed = match operation.operation() {
            Operation::Kubernetes(_) if self.script.is_repeated() => {
                before != self.script.version(operation).await
            }
            // They come to the same however often they are sent, and whether they change anything is not known.
            Operation::Http(own) if matches!(own.method.as_str(), "PUT" | "DELETE") => false,
            _ => answered.as_ref().is_ok_and(|answer| answer.changed),
        };
        self.script.see(operation, scope, has_changed);
        answered
    }

    async fn probe(&self) -> Result<(), Fault> {
        self.inner.probe().await
    }
}

/// HTTP endpoints that answer what the scenario says, as far as it is still to come.
#[derive(Clone)]
pub(super) struct ScriptedHttp {
    answers: Answers<HttpAnswer>,
}

impl ScriptedHttp {
    pub(super) fn new(answers: &[HttpAnswer]) -> Self {
        Self {
            answers: Answers::new(answers),
        }
    }
}

#[async_trait]
impl Sink for ScriptedHttp {
    async fn execute(&self, operation: &AuthorizedOperation, _: &Scope) -> Result<Answer, Fault> {
        let Operation::Http(request) = operation.operation() else {
            return Err(Fault::new(
                FaultKind::UnsupportedResourceOperation,
                "not an HTTP request",
            ));
        };
        let fits = |answer: &HttpAnswer| {
            glob::matches(&answer.method, &request.method)
                && glob::matches(&answer.url, &request.url)
        };
        let Some(answer) = self.answers.next(fits) else {
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
