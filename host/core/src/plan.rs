//! From the requests of an output to what is to be executed, and from what was answered to what it means.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::authorization::{AuthorizedOperation, Caller, Denied, authorize};
use crate::backoff::RetryPolicy;
use crate::capability::Capabilities;
use crate::ceiling::Ceiling;
use crate::digest::digest_of;
use crate::fault::{Fault, FaultKind, Reaction};
use crate::field_manager;
use crate::graph::order::{Node, Order, OrderError};
use crate::parking::Server;
use crate::request::{ExecuteStrategy, ObjectRef, OnError, Operation, Request, Requests};
use crate::result::{RequestResult, ResultEntry};
use crate::text::quoted;
use crate::time::Timestamp;

pub use self::reading::reading_of;

pub mod attempt;
mod dispatch;
mod reading;

/// What is to be executed. Steps and results are in request order.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Whether the first failure that nothing catches stops the rest.
    pub is_serial: bool,
    /// With the strategy `graph`: which steps come before which.
    pub order: Option<Order>,
    /// One for each request.
    pub steps: Vec<PlannedStep>,
}

/// What becomes of one request.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedStep {
    /// The request.
    pub request: Request,
    /// What becomes of it when it fails, with every default applied.
    pub on_error: OnError,
    /// What to do.
    pub action: PlannedAction,
}

/// What to do for one request.
#[derive(Debug, Clone, PartialEq)]
pub enum PlannedAction {
    /// Send this.
    Send(Box<AuthorizedOperation>),
    /// It succeeded in an earlier attempt, unchanged: its result stands.
    Keep(RequestResult),
    /// It succeeded earlier, and its object was not ready: find out whether it is. Only with the strategy `graph`.
    Await(Box<AwaitedStep>),
    /// It may not be sent.
    Refuse(Fault),
}

/// A step that has succeeded, and whose object is to become ready.
#[derive(Debug, Clone, PartialEq)]
pub struct AwaitedStep {
    /// What was sent. It is sent again if the object is gone.
    pub sent: AuthorizedOperation,
    /// What it came to.
    pub result: RequestResult,
    /// A hash of the status that the object had when it was written, if that is known. An object without `status.observedGeneration` is not
    /// ready by it.
    pub written_status: Option<u64>,
}

impl PlannedStep {
    /// Whether sending it may change something.
    #[must_use]
    pub fn is_effect(&self) -> bool {
        matches!(self.action, PlannedAction::Send(_)) && self.request.operation.is_mutating()
    }
}

/// What requests are planned by.
#[derive(Debug, Clone, Copy)]
pub struct PlanRules<'a> {
    /// The Configurator's namespace and name.
    pub configurator: &'a ObjectRef,
    /// Its capabilities.
    pub capabilities: &'a Capabilities,
    /// What others allow at most.
    pub ceiling: &'a Ceiling,
    /// The namespace of the first object of the run.
    pub namespace: &'a str,
    /// Identifies the entry that the requests are of.
    pub entry: EntryId<'a>,
}

impl PlanRules<'_> {
    /// Returns why the object of a request may not be read, if it may not.
    fn unreadable(&self, request: &Request, read: &Operation) -> Option<Fault> {
        let read = Request {
            operation: read.clone(),
            ..request.clone()
        };
        let denied = self.authorize(&read).err()?;
        let fault = denied.into_fault();
        Some(Fault {
            message: format!("to find out whether its object is ready: {}", fault.message),
            ..fault
        })
    }

    /// Authorizes the operation of a request.
    ///
    /// # Errors
    /// As [`authorize`].
    pub(crate) fn authorize(&self, request: &Request) -> Result<AuthorizedOperation, Denied> {
        let effect = self.entry.effect(&request.name);
        let caller = Caller {
            field_manager: &field_manager::of_requests(self.configurator),
            namespace: namespace_of(request, self.namespace),
            partition: &self.configurator.namespace,
            effect: &effect,
        };
        authorize(&request.operation, caller, self.capabilities, self.ceiling)
    }
}

/// Identifies an entry: the same on each of its attempts, also after a restart of the host.
#[derive(Debug, Clone, Copy)]
pub struct EntryId<'a> {
    /// The run's id.
    pub run: &'a str,
    /// The phase, or the path of the leaf.
    pub phase: &'a str,
    /// Which entry of it.
    pub number: u32,
}

impl EntryId<'_> {
    /// Identifies what a request of this entry does.
    #[must_use]
    pub fn effect(&self, request: &str) -> String {
        let number = self.number.to_string();
        digest_of([self.run, self.phase, &number, request].map(str::as_bytes))
    }
}

/// A request that cannot be sent as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidRequest {
    /// The request's name.
    pub name: String,
    /// What is wrong with it.
    pub why: String,
}

/// Results of mutating requests that succeeded in this entry, by request name.
pub type Kept = BTreeMap<String, (Operation, RequestResult)>;

impl Plan {
    /// Decides what becomes of each request: one that the capabilities or the host's ceiling do not allow is
    /// refused; one that succeeded in an earlier attempt, unchanged in name and body, keeps its result.
    ///
    /// # Errors
    /// When a request cannot be sent as it is, whatever the rules say: its name, and why.
    pub fn of(
        requests: Requests,
        kept: &Kept,
        rules: PlanRules<'_>,
    ) -> Result<Self, InvalidRequest> {
        let batch = requests.batch_error_strategy;
        let is_serial = requests.execute_strategy == ExecuteStrategy::Serial;
        let order = match requests.execute_strategy {
            ExecuteStrategy::Graph => Some(order_of(&requests.resource_requests)?),
            ExecuteStrategy::Serial | ExecuteStrategy::Parallel => None,
        };
        let step = |(index, request): (usize, Request)| {
            let authorized = rules.authorize(&request);
            let order = order.as_ref();
            let awaited = order.and_then(|order| {
                // The host names an object that has no name yet.
                let name = request.operation.object_name().unwrap_or("name");
                reading_of(&request, name, !order.dependents(index).is_empty())
            });
            let unreadable = awaited
                .as_ref()
                .and_then(|read| rules.unreadable(&request, read));
            let action = match (authorized, kept.get(&request.name)) {
                (Err(Denied::Invalid(why)), _) => {
                    let name = request.name;
                    return Err(InvalidRequest { name, why });
                }
                (Err(Denied::Forbidden(fault)), _) => PlannedAction::Refuse(fault),
                (Ok(authorized), Some((operation, result))) if *operation == request.operation => {
                    match awaited {
                        None => PlannedAction::Keep(result.clone()),
                        Some(_) => PlannedAction::Await(Box::new(AwaitedStep {
                            sent: authorized,
                            result: result.clone(),
                            written_status: None,
                        })),
                    }
                }
                (Ok(authorized), _) => match unreadable {
                    None => PlannedAction::Send(Box::new(authorized)),
                    Some(fault) => PlannedAction::Refuse(fault),
                },
            };
            Ok(PlannedStep {
                on_error: request.effective_on_error(batch),
                request,
                action,
            })
        };
        let steps = requests.resource_requests.into_iter().enumerate().map(step);
        Ok(Self {
            is_serial,
            steps: steps.collect::<Result<_, _>>()?,
            order,
        })
    }

    /// Returns the read that tells whether what depends on a step may be sent, once the step has succeeded and its object has this name.
    /// `None`: it may be sent at once.
    #[must_use]
    pub fn reading(&self, index: usize, name: &str) -> Option<Operation> {
        let request = &self.steps.get(index)?.request;
        let dependents = self.order.as_ref()?.dependents(index);
        reading_of(request, name, !dependents.is_empty())
    }

    /// The waves of execution, as indexes into [`steps`](Self::steps): what the host's readiness depends on first,
    /// then the rest. The strategy holds within and across the waves. No empty wave is returned.
    #[must_use]
    pub fn waves(&self) -> Vec<Vec<usize>> {
        let (first, rest): (Vec<_>, Vec<_>) = self
            .steps
            .iter()
            .enumerate()
            .map(|(index, step)| (index, step.request.bootstrap_dep))
            .partition(|(_, bootstrap)| *bootstrap);
        [first, rest]
            .into_iter()
            .filter(|wave| !wave.is_empty())
            .map(|wave| wave.into_iter().map(|(index, _)| index).collect())
            .collect()
    }

    /// When a request that may not be sent fails the phase, nothing at all is sent: the results, without any I/O.
    #[must_use]
    pub fn refused(&self, now: Timestamp) -> Option<Vec<RequestResult>> {
        let fails = |step: &PlannedStep| {
            matches!(step.action, PlannedAction::Refuse(_)) && step.on_error == OnError::Fail
        };
        let culprit = self.steps.iter().find(|step| fails(step))?;
        let settle = |step: &PlannedStep| {
            let fault = match &step.action {
                PlannedAction::Refuse(fault) => fault.clone(),
                PlannedAction::Keep(result) => return result.clone(),
                PlannedAction::Await(awaited) => return awaited.result.clone(),
                PlannedAction::Send(_) => not_sent(&culprit.request.name),
            };
            failed(&step.request, fault, now)
        };
        Some(self.steps.iter().map(settle).collect())
    }
}

/// Orders the requests of an output by their `depends-on`.
///
/// # Errors
/// A request that depends on itself, or on what is no request of this output.
pub(crate) fn order_of(requests: &[Request]) -> Result<Order, InvalidRequest> {
    let nodes = requests.iter().map(|request| Node {
        name: &request.name,
        depends_on: &request.depends_on,
    });
    Order::of(nodes).map_err(|error| match error {
        OrderError::Duplicate { name } => InvalidRequest {
            why: "another request has its name".to_owned(),
            name,
        },
        OrderError::Unknown { name, dependency } => InvalidRequest {
            why: format!(
                "`depends-on` names {}, and no request of this output has that name",
                quoted(&dependency)
            ),
            name,
        },
        OrderError::Cycle { path } => {
            let name = path.first().cloned().unwrap_or_default();
            let path = path.iter().chain([&name]).map(|name| format!("{name:?}"));
            let path = path.collect::<Vec<_>>().join(" → ");
            InvalidRequest {
                why: format!("it depends on itself: {path}"),
                name,
            }
        }
    })
}

/// The namespace that a request means when it names none: of the object that it is for, or of the first of the run.
#[must_use]
pub fn namespace_of<'a>(request: &'a Request, default_namespace: &'a str) -> &'a str {
    request
        .of
        .as_ref()
        .map_or(default_namespace, |of| of.namespace.as_str())
}

/// The fault of a request that was not sent because the named one failed.
#[must_use]
pub fn not_sent(culprit: &str) -> Fault {
    Fault::new(
        FaultKind::NotSent,
        format!("not sent, because the request {culprit:?} failed"),
    )
}

/// The result of a request that failed with `fault` before it was sent.
#[must_use]
pub fn failed(request: &Request, fault: Fault, now: Timestamp) -> RequestResult {
    RequestResult {
        request_name: request.name.clone(),
        sink: request.operation.sink(),
        is_declarative: request.is_declarative,
        query_objects: Vec::new(),
        created: now,
        finished: Some(now),
        error: Some(fault),
        http_response: None,
    }
}

/// What a set of results means for the run.
#[derive(Debug, Clone, PartialEq)]
pub struct Conclusion {
    /// What the next handler gets, in request order, without what belongs to [`charged`](Self::charged) objects.
    pub entries: Vec<(String, ResultEntry)>,
    /// The strongest failure that is charged to no single object.
    pub failure: Option<Failure>,
    /// In a batch, the objects that failures are charged to, each with the strongest of its own.
    pub charged: BTreeMap<ObjectRef, Failure>,
    /// Whether requests that do not belong to [`charged`](Self::charged) objects were not sent. Their objects must
    /// be tried again.
    pub is_incomplete: bool,
}

/// A failure that nothing caught.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The request that failed; empty when it was the handler itself.
    pub request_name: String,
    /// What happened.
    pub fault: Fault,
    /// What the run does about it.
    pub reaction: Reaction,
    /// The server that it waits for, if it parks.
    pub server: Option<Box<Server>>,
    /// Whether it is the module's fault, once nothing more is tried: its handler has failed, or what it asks for cannot be done.
    pub is_of_module: bool,
}

impl Failure {
    /// The failure of the request of this name.
    #[must_use]
    pub fn of_request(request_name: impl Into<String>, fault: Fault) -> Self {
        Self {
            request_name: request_name.into(),
            reaction: fault.kind.reaction(),
            server: fault.kind.sink().map(Server::behind).map(Box::new),
            is_of_module: fault.kind.is_of_request(),
            fault,
        }
    }

    /// How long to wait, as the handler or the server asked: what a handler wishes for its own object is kept, what a server asks
    /// for is capped.
    #[must_use]
    pub fn retry_after(&self, policy: &RetryPolicy) -> Option<Duration> {
        let wish = self.fault.retry_after?;
        let is_of_handler = self.request_name.is_empty() && self.is_of_module;
        Some(match is_of_handler {
            true => wish,
            false => wish.min(policy.max_retry_after),
        })
    }

    /// The strongest of several: what cannot be retried, then what waits for a sink, then a restart, then a resend.
    fn rank(&self) -> u8 {
        match self.reaction {
            Reaction::Fail => 3,
            Reaction::Park => 2,
            Reaction::Restart => 1,
            Reaction::Resend => 0,
        }
    }
}

/// Reads the results. `results` holds one for each step, in order.
///
/// A store that cannot be reached has said nothing, so there is nothing to catch: the run waits for it, whatever the
/// request says. In the last phase a caught failure is a failure, since nobody is left to see it. In a batch, a failure is
/// charged to the object that its request is `of`.
#[must_use]
pub fn conclude(
    plan: &Plan,
    results: Vec<RequestResult>,
    is_last: bool,
    is_batch: bool,
) -> Conclusion {
    let mut failure: Option<Failure> = None;
    let mut charged: BTreeMap<ObjectRef, Failure> = BTreeMap::new();
    for (step, result) in plan.steps.iter().zip(&results) {
        let Some(fault) = &result.error else { continue };
        let is_seen_by_nobody = step.on_error == OnError::CatchError && is_last;
        let counts = is_uncaught(step, result) || is_seen_by_nobody;
        if !counts || fault.kind == FaultKind::NotSent {
            continue;
        }
        let mut found = Failure::of_request(&result.request_name, fault.clone());
        if let Some(server) = &mut found.server {
            **server = Server::of(&step.request.operation);
        }
        match &step.request.of {
            Some(of) if is_batch => {
                strongest(
                    charged.entry(of.clone()).or_insert_with(|| found.clone()),
                    found,
                );
            }
            _ => match &mut failure {
                Some(known) => strongest(known, found),
                None => failure = Some(found),
            },
        }
    }
    // What is not sent because of a failure that is caught is caught with it.
    let is_uncaught = failure.is_some() || !charged.is_empty();
    let is_incomplete = is_uncaught
        && plan.steps.iter().zip(&results).any(|(step, result)| {
            let leaves = step
                .request
                .of
                .as_ref()
                .is_some_and(|of| charged.contains_key(of));
            !leaves
                && result
                    .error
                    .as_ref()
                    .is_some_and(|fault| fault.kind == FaultKind::NotSent)
        });
    let entries = entries(plan, results, &charged);
    Conclusion {
        entries,
        failure,
        charged,
        is_incomplete,
    }
}

/// Whether a result is a failure that the request does not catch, whatever phase it is in.
fn is_uncaught(step: &PlannedStep, result: &RequestResult) -> bool {
    let Some(fault) = &result.error else {
        return false;
    };
    // Whoever asks an HTTP endpoint may catch that it is away.
    fault.kind.is_outage() || step.on_error == OnError::Fail
}

/// Keeps the stronger of the two. Every server that asked for patience gets it, so the longest wait counts.
fn strongest(known: &mut Failure, found: Failure) {
    let wait = known.fault.retry_after.max(found.fault.retry_after);
    if found.rank() > known.rank() {
        *known = found;
    }
    known.fault.retry_after = wait;
}

fn entries(
    plan: &Plan,
    results: Vec<RequestResult>,
    charged: &BTreeMap<ObjectRef, Failure>,
) -> Vec<(String, ResultEntry)> {
    let mut entries: Vec<(String, ResultEntry)> = Vec::new();
    let mut groups: BTreeMap<String, usize> = BTreeMap::new();
    for (step, result) in plan.steps.iter().zip(results) {
        if step
            .request
            .of
            .as_ref()
            .is_some_and(|of| charged.contains_key(of))
        {
            continue;
        }
        let is_dropped = result.error.is_some() && step.on_error == OnError::DropError;
        match &step.request.group_by {
            None if is_dropped => {}
            None => entries.push((result.request_name.clone(), ResultEntry::One(result))),
            Some(group) => {
                let at = *groups.entry(group.clone()).or_insert_with(|| {
                    entries.push((group.clone(), ResultEntry::Group(Vec::new())));
                    entries.len() - 1
                });
                if let (false, Some((_, ResultEntry::Group(members)))) =
                    (is_dropped, entries.get_mut(at))
                {
                    members.push(result);
                }
            }
        }
    }
    entries
}

/// The mutating requests that succeeded, so that a resend does not send them again.
pub fn keep_successes(plan: &Plan, results: &[RequestResult], kept: &mut Kept) {
    for (step, result) in plan.steps.iter().zip(results) {
        let success = match &step.action {
            // A read of its object may have failed since.
            PlannedAction::Await(awaited) => Some(&awaited.result),
            _ => Some(result).filter(|result| result.error.is_none()),
        };
        if let Some(result) = success.filter(|_| step.request.operation.is_mutating()) {
            kept.insert(
                step.request.name.clone(),
                (step.request.operation.clone(), result.clone()),
            );
        }
    }
}

#[cfg(test)]
mod tests;
