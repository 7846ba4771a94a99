//! Requests that are sent and not awaited.
//!
//! The newest request for a target supersedes an older one that has not gone through. An attempt under way is never
//! broken off by a newer request: the two could arrive in the wrong order.

mod targets;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use configurator_core::authorization::AuthorizedOperation;
use configurator_core::backoff::{RetryPolicy, mix};
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::layers;
use configurator_core::plan::Failure;
use configurator_core::request::Operation;
use configurator_core::result::Answer;
use configurator_core::retry::{self, Decision, Tries};
use configurator_core::service_account::ServiceAccount;

use self::targets::{Target, Targets};
use crate::answers::AnswerBudget;
use crate::clock::SharedClock;
use crate::events::{HostEvent, Publisher, Subject};
use crate::metrics::Metrics;
use crate::redaction::Redactor;
use crate::shards::Claim;
use crate::sinks::{Scope, Sinks};
use crate::tasks::{TaskKind, Tasks};

/// The highest number of targets with a request under way.
pub const MAX_TARGETS: usize = 10_000;
/// The highest number of these for the Configurators of one namespace.
pub const MAX_TARGETS_OF_NAMESPACE: usize = 1_000;

/// A request that is sent and not awaited.
#[derive(Clone)]
pub struct DeclarativeJob {
    /// What to do.
    pub operation: AuthorizedOperation,
    /// On whose behalf.
    pub scope: Scope,
    /// The request's name.
    pub request_name: String,
    /// The object that it is made for.
    pub owner: Option<Subject>,
    /// How often it is tried.
    pub retry: RetryPolicy,
    /// Knows the secrets of the run that made it.
    pub redactor: Arc<Redactor>,
    /// Where hosts share the objects: what it needs to be sent.
    pub(crate) claim: Option<Claim>,
}

/// Sends declarative requests.
#[derive(Clone)]
pub struct DeclarativeRequests {
    inner: Arc<Inner>,
}

struct Inner {
    answers: AnswerBudget,
    sinks: Sinks,
    clock: SharedClock,
    tasks: Tasks,
    publisher: Publisher,
    metrics: Arc<Metrics>,
    targets: Mutex<Targets>,
}

impl DeclarativeRequests {
    /// Nothing is under way.
    #[must_use]
    pub fn new(
        sinks: Sinks,
        clock: SharedClock,
        tasks: Tasks,
        publisher: Publisher,
        metrics: Arc<Metrics>,
        answers: AnswerBudget,
    ) -> Self {
        let targets = Mutex::default();
        Self {
            inner: Arc::new(Inner {
                answers,
                sinks,
                clock,
                tasks,
                publisher,
                metrics,
                targets,
            }),
        }
    }

    /// Sends the request as soon as the attempt that is under way for its target has ended.
    ///
    /// # Errors
    /// When [`MAX_TARGETS`] targets have a request under way, or [`MAX_TARGETS_OF_NAMESPACE`] for the namespace.
    pub fn submit(&self, job: DeclarativeJob) -> Result<(), Fault> {
        let name = target_of(&job);
        let mut targets = self.targets();
        if let Some(target) = targets.get_mut(&name) {
            target.is_cancelled = false;
            target.owner = job.owner.as_ref().map(|owner| owner.uid.clone());
            target.next = Some(job);
            target.changed.notify_one();
            return Ok(());
        }
        let target = Target {
            namespace: job.scope.configurator.namespace.clone(),
            owner: job.owner.as_ref().map(|owner| owner.uid.clone()),
            ..Target::default()
        };
        targets.insert(name.clone(), target).map_err(|limit| {
            self.inner.metrics.declarative_refused();
            Fault::new(
                FaultKind::ResourceMutation,
                format!("{limit} declarative requests are under way; this one was not taken"),
            )
        })?;
        drop(targets);
        let this = self.clone();
        self.inner.tasks.spawn(
            TaskKind::Declarative,
            async move { this.drive(name, job).await },
        );
        Ok(())
    }

    /// Gives up what is under way for an object that is gone.
    pub fn cancel(&self, uid: &str) {
        for target in self.targets().iter_mut() {
            if target.owner.as_deref() == Some(uid) {
                target.is_cancelled = true;
                target.next = None;
                target.changed.notify_one();
            }
        }
    }

    /// How many targets have a request under way.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.targets().len()
    }

    fn targets(&self) -> MutexGuard<'_, Targets> {
        self.inner
            .targets
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    async fn drive(&self, name: String, mut job: DeclarativeJob) {
        let Some(changed) = self
            .targets()
            .get_mut(&name)
            .map(|target| target.changed.clone())
        else {
            return;
        };
        let mut tries = Tries::default();
        loop {
            let sink = job.operation.sink();
            let Some(answer) = self.send(&job).await else {
                // The object is another host's business, and its handler will ask for the same there.
                let mut targets = self.targets();
                let Some(next) = targets.get_mut(&name).and_then(|target| target.next.take())
                else {
                    targets.remove(&name);
                    return;
                };
                job = next;
                tries = Tries::default();
                continue;
            };
            self.inner
                .metrics
                .request(sink, answer.as_ref().err().map(|fault| fault.kind));
            if let Some(next) = self.take_next(&name) {
                job = next;
                tries = Tries::default();
                continue;
            }
            let wait = match answer {
                Ok(_) => None,
                Err(fault) => {
                    let jitter = name
                        .bytes()
                        .fold(u64::from(tries.failures) + 1, |seed, byte| {
                            mix(seed ^ u64::from(byte))
                        });
                    let failure = Failure::of_request(&job.request_name, fault.clone());
                    let verdict = retry::decide(failure, tries, &job.retry, jitter);
                    tries = verdict.tries;
                    match verdict.decision {
                        Decision::Resend { after }
                        | Decision::Restart { after }
                        | Decision::Park { after } => Some(after),
                        Decision::Fail => {
                            self.give_up(&job, &fault, tries.failures);
                            None
                        }
                    }
                }
            };
            if let Some(wait) = wait {
                tokio::select! {
                    biased;
                    () = self.inner.tasks.drain_token().cancelled() => {}
                    () = changed.notified() => {}
                    () = self.inner.clock.sleep(wait) => {}
                }
            }
            let is_stopping = wait.is_some() && self.inner.tasks.drain_token().is_cancelled();
            let mut targets = self.targets();
            let Some(target) = targets.get_mut(&name) else {
                return;
            };
            match target.next.take() {
                Some(next) => {
                    job = next;
                    tries = Tries::default();
                }
                None if wait.is_none() || target.is_cancelled || is_stopping => {
                    targets.remove(&name);
                    return;
                }
                None => {}
            }
        }
    }

    /// One attempt; `None` when the object is not this host's any more.
    async fn send(&self, job: &DeclarativeJob) -> Option<Result<Answer, Fault>> {
        let sink = self.inner.sinks.get(job.operation.sink());
        let answers = self.inner.answers.run();
        let room = match answers.begin().await {
            Ok(room) => room,
            Err(fault) => return Some(Err(fault)),
        };
        let mut scope = job.scope.clone();
        scope.answer = room;
        let Some(claim) = &job.claim else {
            return Some(sink.execute(&job.operation, &scope).await);
        };
        let permit = claim.begin()?;
        let sending = async {
            permit.admit(&mut scope).await;
            sink.execute(&job.operation, &scope).await
        };
        tokio::select! {
            biased;
            () = permit.lost() => None,
            answer = sending => Some(answer),
        }
    }

    fn take_next(&self, name: &str) -> Option<DeclarativeJob> {
        self.targets().get_mut(name)?.next.take()
    }

    fn give_up(&self, job: &DeclarativeJob, fault: &Fault, failures: u32) {
        self.inner.metrics.declarative_given_up();
        let attempts = if failures == 1 { "attempt" } else { "attempts" };
        let fault = job.redactor.redact(&fault.to_string());
        let message = format!(
            "the declarative request {:?} failed for good after {failures} {attempts}: {fault}",
            job.request_name
        );
        tracing::warn!(
            configurator = %job.scope.configurator,
            request = job.request_name,
            "{message}"
        );
        if let Some(owner) = &job.owner {
            let event = HostEvent::warning(owner.clone(), "DeclarativeRequestFailed", message);
            self.inner.publisher.publish(event);
        }
    }
}

/// Names what a request changes, and on whose behalf: a request of a team never supersedes one of others.
fn target_of(job: &DeclarativeJob) -> String {
    let operation = job.operation.operation();
    let own = job.scope.partition.prefix();
    let partition = format!("{own} {}", operation.partition().unwrap_or_default());
    match operation {
        Operation::Kubernetes(request) => format!(
            "kubernetes {} {}/{} {}/{} {}",
            job.scope
                .service_account
                .as_ref()
                .map(ServiceAccount::user)
                .unwrap_or_default(),
            request.group,
            request.plural,
            request.namespace,
            request.name,
            request.subresource.as_deref().unwrap_or_default()
        ),
        Operation::Config(request) => {
            let keys: Vec<String> = request
                .operations
                .iter()
                .filter_map(|operation| layers::key_of(operation, job.operation.namespace()).ok())
                .collect();
            format!("configstore {partition} {}", keys.join(" "))
        }
        Operation::Secret(request) => format!("secretstore {partition} {}", request.name),
        Operation::Http(request) => {
            let owner = job
                .owner
                .as_ref()
                .map(|owner| owner.uid.as_str())
                .unwrap_or_default();
            format!(
                "http {} {} {owner} {}",
                request.method, request.url, job.request_name
            )
        }
        Operation::Extension(request) => format!(
            "extension {} {} {}",
            job.scope.configurator, request.extension, request.target
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use configurator_core::authorization::{Caller, authorize};
    use configurator_core::capability::Capabilities;
    use configurator_core::ceiling::Ceiling;
    use configurator_core::partition::Partition;
    use configurator_core::request::{
        ConfigBasic, ConfigOperation, ConfigRequest, ConfigVerb, KubernetesRequest, KubernetesVerb,
        SecretRequest, SecretVerb,
    };

    use super::*;

    fn job(operation: &Operation, namespace: Option<&str>) -> DeclarativeJob {
        let (everything, unlimited) = (Capabilities::everything(), Ceiling::unlimited());
        let operation = authorize(operation, Caller::default(), &everything, &unlimited);
        let partition = namespace.map(|name| Partition::of_namespace(name, "uid"));
        let account = namespace.map(|namespace| ServiceAccount {
            namespace: namespace.to_owned(),
            name: "default".to_owned(),
        });
        DeclarativeJob {
            operation: operation.unwrap(),
            scope: Scope {
                partition: partition.unwrap_or_default(),
                service_account: account,
                ..Scope::default()
            },
            request_name: "request".to_owned(),
            owner: None,
            retry: RetryPolicy::default(),
            redactor: Arc::default(),
            claim: None,
        }
    }

    /// A later request supersedes an earlier one with the same target.
    #[test]
    fn requests_of_different_teams_have_different_targets() {
        let put = ConfigOperation::Basic(ConfigBasic {
            verb: ConfigVerb::Update,
            key: "key".into(),
            value: Some("1".into()),
        });
        let operations = [
            Operation::Config(ConfigRequest {
                is_transaction: false,
                operations: vec![put],
                partition: None,
            }),
            Operation::Secret(SecretRequest {
                name: "name".into(),
                verb: SecretVerb::Create,
                value: None,
                version: None,
                partition: None,
            }),
            Operation::Kubernetes(KubernetesRequest {
                namespace: "shop".into(),
                name: "name".into(),
                ..KubernetesRequest::new(KubernetesVerb::Delete, "", "v1", "configmaps")
            }),
        ];
        for operation in &operations {
            let of = |namespace| target_of(&job(operation, namespace));
            let targets = BTreeSet::from([None, Some("team-a"), Some("team-b")].map(of));
            assert_eq!(targets.len(), 3, "{targets:?}");
            assert_eq!(of(Some("team-a")), of(Some("team-a")));
        }
    }
}
