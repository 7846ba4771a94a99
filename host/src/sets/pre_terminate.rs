//! The requests that are sent when the owner of a set is being deleted, before any member is.

use std::collections::BTreeMap;
use std::time::Duration;

use configurator_core::desired::marks;
use configurator_core::fault::{Fault, FaultKind, Reaction};
use configurator_core::field_manager;
use configurator_core::graph::observation::Health;
use configurator_core::plan::{Failure, InvalidRequest, Plan, PlannedAction, conclude, reading_of};
use configurator_core::request::{OnError, Operation, Readiness, Request};
use configurator_core::result::RequestResult;
use configurator_core::run::Run;
use serde_json::Value;

use super::inventory::Stored;
use super::live::LiveSet;
use super::reconcile::{SetRun, begun_again, invalid};
use crate::cipher::Cipher;
use crate::executor::{IdempotencyKeys, Sending};
use crate::objects::text;
use crate::readiness::ReadyWhen;
use crate::redaction::Redactor;
use crate::resource::object_set::SentRequest;
use crate::seal::StateKey;

/// The most bytes of the requests of one set: they are part of its `ObjectSet`.
const MAX_BYTES: usize = 256 << 10;
/// How often an object is read that is to be ready before the deletion goes on.
pub(super) const POLL: Duration = Duration::from_secs(2);

/// The requests of the newest set that was ready, and what has become of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct PreTerminate {
    requests: Vec<Request>,
    /// The requests as the `ObjectSet` has them.
    sealed: String,
    /// Those that have succeeded, by name.
    sent: BTreeMap<String, Sent>,
}

#[derive(Debug, Clone)]
struct Sent {
    /// The name of the object that the request wrote or read.
    object: String,
    is_ready: bool,
}

/// Whether the members of a deleted owner may be deleted.
pub(super) enum Preparation {
    /// They may.
    Done,
    /// Something is awaited.
    Waiting(String),
    /// A request has failed. The text is for the status.
    Failed(Failure, String),
}

impl Preparation {
    /// Says why the members may not be deleted yet.
    pub(super) fn reason(&self) -> Option<&str> {
        match self {
            Self::Done => None,
            Self::Waiting(reason) | Self::Failed(_, reason) => Some(reason),
        }
    }

    fn failed(failure: Failure, redactor: &Redactor) -> Self {
        let mut failure = begun_again(failure);
        failure.fault.message = redactor.redact(&failure.fault.message);
        let reason = format!(
            "the request {:?} of `pre-terminate` has failed: {}",
            failure.request_name, failure.fault.message
        );
        Self::Failed(failure, reason)
    }
}

impl PreTerminate {
    /// Reads what an `ObjectSet` has. `None`: it is not what a host has written there.
    pub(super) fn open(
        key: &StateKey,
        owner: &str,
        sealed: String,
        sent: Vec<SentRequest>,
    ) -> Option<Self> {
        let requests = match sealed.as_str() {
            "" => Vec::new(),
            sealed => {
                let opened = cipher(key).open(&purpose(owner), sealed)?;
                serde_json::from_slice(&opened).ok()?
            }
        };
        let sent = sent.into_iter().map(|sent| {
            let SentRequest {
                name,
                object,
                ready: is_ready,
            } = sent;
            (name, Sent { object, is_ready })
        });
        Some(Self {
            requests,
            sealed,
            sent: sent.collect(),
        })
    }

    /// Replaces the requests.
    ///
    /// # Errors
    /// When they cannot be encrypted.
    fn replace(&mut self, key: &StateKey, owner: &str, requests: &[Request]) -> Result<(), Fault> {
        let text = text_of(requests);
        let sealed = match requests {
            [] => String::new(),
            _ => cipher(key)
                .seal(&purpose(owner), text.as_bytes())
                .map_err(invalid)?,
        };
        *self = Self {
            requests: requests.to_vec(),
            sealed,
            sent: BTreeMap::new(),
        };
        Ok(())
    }

    /// The requests, and those that have succeeded, as the `ObjectSet` has them.
    pub(super) fn stored(&self) -> (String, Vec<SentRequest>) {
        let sent = self.sent.iter().map(|(name, sent)| SentRequest {
            name: name.clone(),
            object: sent.object.clone(),
            ready: sent.is_ready,
        });
        (self.sealed.clone(), sent.collect())
    }

    fn is_ready(&self, name: &str) -> bool {
        self.sent.get(name).is_some_and(|sent| sent.is_ready)
    }

    /// The requests that may be sent now.
    fn next(&self) -> Vec<Request> {
        let is_next = |request: &&Request| {
            !self.sent.contains_key(&request.name)
                && request.depends_on.iter().all(|name| self.is_ready(name))
        };
        self.requests.iter().filter(is_next).cloned().collect()
    }

    /// The requests whose objects are not ready.
    fn unready(&self) -> Vec<Request> {
        let sent = |request: &&Request| self.sent.get(&request.name);
        let is_unready = |request: &&Request| sent(request).is_some_and(|sent| !sent.is_ready);
        self.requests.iter().filter(is_unready).cloned().collect()
    }
}

/// Checks that the requests of a set can be stored and sent.
///
/// # Errors
/// What is wrong with the first one. [`FaultKind::ResourcePermission`] if a rule is missing.
pub(super) fn check(run: &Run, redactor: &Redactor, requests: &[Request]) -> Result<(), Fault> {
    let text = text_of(requests);
    if text.len() > MAX_BYTES {
        return Err(invalid(format!(
            "the requests of `pre-terminate` have {} bytes as JSON; {MAX_BYTES} are allowed",
            text.len()
        )));
    }
    for request in requests {
        let named = |fault: Fault| Fault {
            message: format!(
                "request {:?} of `pre-terminate`: {}",
                request.name, fault.message
            ),
            ..fault
        };
        let text = text_of(std::slice::from_ref(request));
        if redactor.redact(&text) != text {
            return Err(named(invalid(
                "it has the value of a secret, and such requests are stored; have what it asks for read the secret".to_owned(),
            )));
        }
        ready_when(request).map_err(|error| named(invalid(error)))?;
        let plan = plan_of(run, vec![request.clone()])?;
        for step in plan.steps {
            if let PlannedAction::Refuse(fault) = step.action {
                return Err(named(fault));
            }
        }
        if let Some(read) = reading(request, "name") {
            let authorized = run.authorize_member(&read, &manager(run));
            authorized.map_err(|denied| named(denied.into_fault()))?;
        }
    }
    Ok(())
}

impl SetRun<'_> {
    /// Stores the requests of a set that is ready.
    pub(super) async fn keep_pre_terminate(
        self,
        set: &mut LiveSet,
        requests: &[Request],
    ) -> Result<(), Fault> {
        let Stored {
            pre_terminate,
            owner,
            ..
        } = &mut set.stored;
        if pre_terminate.requests == requests {
            return Ok(());
        }
        let key = self.sets.key.get().await?;
        pre_terminate.replace(key, &owner.uid, requests)?;
        self.save(set).await
    }

    /// Sends the requests that come before the deletion of the members. Each is sent after what it depends on is ready, and not again once it
    /// has succeeded. A host that stops between the two may send a request twice.
    pub(super) async fn pre_terminate(
        self,
        set: &mut LiveSet,
        owner: &Value,
    ) -> Result<Preparation, Fault> {
        let is_skipped = marks::is_true(owner, marks::SKIP_PRE_TERMINATE);
        if is_skipped || set.stored.pre_terminate.requests.is_empty() {
            return Ok(Preparation::Done);
        }
        for request in set.stored.pre_terminate.unready() {
            if let Some(failure) = self.look(set, &request).await? {
                return Ok(Preparation::failed(failure, self.redactor));
            }
        }
        loop {
            let next = set.stored.pre_terminate.next();
            if next.is_empty() {
                break;
            }
            self.write_ready().await;
            let plan = plan_of(self.run, next)?;
            let keys = self.keys(set, &plan).await?;
            let sending = Sending {
                run: self.run,
                keys: &keys,
                answers: self.answers,
                redactor: self.redactor,
                permit: self.permit,
                suspects: None,
                yields: self.yields,
            };
            let executed = self.executor.execute(&plan, sending).await;
            for (step, result) in plan.steps.iter().zip(&executed.results) {
                let is_dropped = step.on_error == OnError::DropError;
                let has_succeeded = match &result.error {
                    None => true,
                    Some(fault) => is_dropped && !fault.kind.is_outage(),
                };
                if has_succeeded {
                    let sent = sent(&step.request, result);
                    let name = step.request.name.clone();
                    set.stored.pre_terminate.sent.insert(name, sent);
                }
            }
            self.save(set).await?;
            if let Some(failure) = conclude(&plan, executed.results, true, false).failure {
                return Ok(Preparation::failed(failure, self.redactor));
            }
        }
        let unready = set.stored.pre_terminate.unready();
        Ok(match unready.first() {
            None => Preparation::Done,
            Some(request) => Preparation::Waiting(format!(
                "the request {:?} of `pre-terminate`: its object is not ready",
                request.name
            )),
        })
    }

    /// Reads an object that is to be ready. One that is gone is written again.
    async fn look(self, set: &mut LiveSet, request: &Request) -> Result<Option<Failure>, Fault> {
        let pre_terminate = &mut set.stored.pre_terminate;
        let Some(sent) = pre_terminate.sent.get_mut(&request.name) else {
            return Ok(None);
        };
        let Some(read) = reading(request, &sent.object) else {
            sent.is_ready = true;
            return Ok(None);
        };
        let authorized = self.run.authorize_member(&read, &manager(self.run));
        let operation = authorized.map_err(|denied| denied.into_fault())?;
        let health = match self.actions().send(&request.name, &operation).await {
            Ok(object) => health_of(request, &object.unwrap_or_default()),
            Err(fault) if fault.kind == FaultKind::ResourceNotFound => {
                pre_terminate.sent.remove(&request.name);
                return Ok(None);
            }
            Err(fault) => return Err(fault),
        };
        match health {
            Health::Ready => sent.is_ready = true,
            Health::Waiting(_) => {}
            Health::Failed(reason) => {
                let fault = invalid(format!("its object has failed: {reason}"));
                return Ok(Some(Failure {
                    reaction: Reaction::Fail,
                    ..Failure::of_request(request.name.clone(), fault)
                }));
            }
        }
        Ok(None)
    }

    /// The keys of HTTP requests. They are the same each time, so that an endpoint can tell a request that it has had.
    async fn keys(self, set: &LiveSet, plan: &Plan) -> Result<IdempotencyKeys, Fault> {
        let key = self.sets.key.get().await?;
        let owner = &set.stored.owner.uid;
        let requests = plan.steps.iter().map(|step| &step.request);
        let keys = requests.filter_map(|request| {
            let Operation::Http(http) = &request.operation else {
                return None;
            };
            let body = http.body.as_deref().unwrap_or_default();
            let parts = [
                "pre-terminate",
                owner,
                &request.name,
                &http.method,
                &http.url,
            ];
            let parts: Vec<&[u8]> = parts.map(str::as_bytes).into_iter().chain([body]).collect();
            Some((request.name.clone(), key.seal(&parts)))
        });
        Ok(keys.collect())
    }
}

fn sent(request: &Request, result: &RequestResult) -> Sent {
    let object = result.query_objects.first();
    let object = object.map(|object| object.to_value()).unwrap_or_default();
    let has_object = request.operation.answers_object() && result.error.is_none();
    Sent {
        object: text(&object, "/metadata/name").to_owned(),
        is_ready: !has_object || health_of(request, &object) == Health::Ready,
    }
}

/// Whether the object of a request is ready.
fn health_of(request: &Request, object: &Value) -> Health {
    match ready_when(request) {
        Ok(ready_when) => ready_when.health(object, false),
        Err(error) => Health::Failed(error),
    }
}

fn ready_when(request: &Request) -> Result<ReadyWhen, String> {
    let readiness = request.ready_when.as_ref();
    ReadyWhen::new(readiness.unwrap_or(&Readiness::Observed))
}

/// Reads the object of a request. `None`: the request is about no object that could have to become ready.
fn reading(request: &Request, name: &str) -> Option<Operation> {
    match request.operation.answers_object() {
        true => reading_of(request, name, true),
        false => None,
    }
}

fn plan_of(run: &Run, requests: Vec<Request>) -> Result<Plan, Fault> {
    let planned = run.plan_pre_terminate(requests);
    planned.map_err(|InvalidRequest { name, why }| {
        invalid(format!("request {name:?} of `pre-terminate`: {why}"))
    })
}

fn manager(run: &Run) -> String {
    field_manager::of_sets(&run.configurator().key)
}

fn text_of(requests: &[Request]) -> String {
    serde_json::to_string(requests).unwrap_or_default()
}

fn cipher(key: &StateKey) -> Cipher {
    Cipher::new(&key.derive(b"pre-terminate").into())
}

fn purpose(owner: &str) -> String {
    format!("pre-terminate {owner}")
}

#[cfg(test)]
mod tests {
    use configurator_core::request::{SecretRequest, SecretVerb};

    use super::*;

    #[test]
    fn stored_requests_are_read_with_their_key_for_their_owner() {
        let request = |name: &str| {
            let secret = SecretRequest {
                name: "db".to_owned(),
                verb: SecretVerb::Delete,
                value: None,
                version: None,
                partition: None,
            };
            Request::new(name, Operation::Secret(secret))
        };
        let (key, other) = (StateKey::new([1; 32]), StateKey::new([2; 32]));
        let mut kept = PreTerminate::default();
        kept.replace(&key, "uid", &[request("drain"), request("leave")])
            .unwrap();
        let is_ready = true;
        let object = String::new();
        kept.sent
            .insert("drain".to_owned(), Sent { object, is_ready });
        let (sealed, sent) = kept.stored();
        assert!(!sealed.contains("drain"));
        let open = |key, owner| PreTerminate::open(key, owner, sealed.clone(), sent.clone());
        let opened = open(&key, "uid").unwrap();
        assert_eq!(opened.requests, kept.requests);
        assert_eq!(opened.next(), [request("leave")]);
        assert!(open(&key, "another").is_none());
        assert!(open(&other, "uid").is_none());
    }
}
