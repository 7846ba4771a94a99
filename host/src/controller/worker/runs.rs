//! Runs: what the queue has decided is begun, and what came of runs goes back to the queue.

use std::sync::Arc;
use std::time::Duration;

use configurator_core::fault::{Fault, FaultKind, Reaction};
use configurator_core::handler::WatchEvent;
use configurator_core::plan::Failure;
use configurator_core::queue::{Action, Ticket};
use configurator_core::request::ObjectRef;
use configurator_core::retry::Tries;
use configurator_core::run::{
    Chain, Finish, Member, Pause, Run, RunEnd, RunOutcome, RunStart, Step, host_failure,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::mpsc;

use super::{EndedRun, MAX_LISTED, MAX_MESSAGE, STANDINGS, Worker, WorkerParts};
use crate::controller::cleanup::{Cleanup, Cleanups, Records};
use crate::controller::driver::{Resting, RunReport, drive};
use crate::controller::machine_run::{TurnParts, take_turn};
use crate::controller::places::{Place, PlaceNews};
use crate::observer::Notice;
use crate::resource::FailureStatus;
use crate::shards::{ConfiguratorClaim, Elsewhere, Permit};
use crate::tasks::TaskKind;

impl Worker {
    pub(super) async fn on_ended(&mut self, ended: EndedRun) {
        let EndedRun {
            ticket,
            report,
            permit,
        } = ended;
        let now = self.now();
        let members = self.members.remove(&ticket).unwrap_or_default();
        // A run can break off while it waits for a place.
        self.reclaiming.remove(&ticket);
        let keys: Vec<ObjectRef> = members.iter().map(|member| member.key.clone()).collect();
        let outcome = match report {
            None => broken_off(members),
            Some(report) => {
                // A turn of a machine.
                if let Some((awaited, key)) = self.awaited.as_mut().zip(keys.first()) {
                    awaited.wait(key, report.awaited);
                    if let Some(standing) = report.standing
                        && self.standings.len() < STANDINGS
                    {
                        self.standings.insert(key.clone(), standing);
                    }
                }
                if let RunEnd::Finished(Finish::Restart { failure, .. })
                | RunEnd::Paused(Pause::Park { failure, .. }) = &report.outcome.end
                {
                    self.on_refusal(failure);
                }
                report.outcome
            }
        };
        let actions = self.queue.end(ticket, outcome, now);
        self.act_with(actions, permit.as_ref()).await;
        drop(permit);
        self.hear_on(&keys).await;
        for key in &keys {
            if self.members_changed.remove(key) {
                self.on_members(key.clone()).await;
            }
        }
    }

    /// Members of the object's set have changed.
    pub(super) async fn on_members(&mut self, key: ObjectRef) {
        if self.queue.is_running(&key) {
            self.members_changed.insert(key);
            return;
        }
        let now = self.now();
        let actions = self.queue.on_members(&key, now);
        self.act(actions).await;
    }

    /// A server has refused a run for now, or has not answered it. What the host itself asks of the server is not observed
    /// elsewhere.
    pub(super) fn on_refusal(&mut self, failure: &Failure) {
        if let (Reaction::Park, Some(server)) = (failure.reaction, &failure.server) {
            self.refused
                .insert(server.sink, failure.fault.message.clone());
            if failure.fault.retry_after.is_none() {
                self.parts.availability.suspect(server.sink);
            }
        }
    }

    /// What was told to objects when their turn was over gives them another.
    pub(super) async fn hear_on(&mut self, keys: &[ObjectRef]) {
        for key in keys {
            let is_empty = self.inboxes.get(key).is_none_or(|inbox| inbox.is_empty());
            let now = self.now();
            let actions = match is_empty {
                true => Vec::new(),
                false => self.queue.nudge(key, now),
            };
            self.act(actions).await;
            if is_empty && !self.queue.is_running(key) {
                self.inboxes.remove(key);
            }
        }
    }

    pub(super) async fn on_places(&mut self, news: Vec<PlaceNews>) {
        for news in news {
            let now = self.now();
            let actions = match news {
                PlaceNews::Lent(ticket) => self.queue.lend(ticket, now),
                PlaceNews::TakenBack(ticket) => {
                    // Entries of the same machine that wait for the place go on.
                    self.reclaiming.remove(&ticket);
                    self.queue.take_back(ticket, now)
                }
                PlaceNews::Reclaimed(ticket, grant) => {
                    self.reclaiming.insert(ticket, grant);
                    self.queue.reclaim(ticket, now)
                }
            };
            self.act(actions).await;
        }
    }

    pub(super) async fn act(&mut self, actions: Vec<Action<Resting>>) {
        self.act_with(actions, None).await;
    }

    /// `permit` is that of the run whose end the actions follow from.
    async fn act_with(&mut self, actions: Vec<Action<Resting>>, permit: Option<&Arc<Permit>>) {
        for action in actions {
            match action {
                Action::Start {
                    ticket,
                    members,
                    chain,
                    tries,
                    is_suspect,
                } => {
                    let start = self.run_start(members, chain, tries);
                    self.start(ticket, start, is_suspect);
                }
                Action::Resume {
                    ticket,
                    members,
                    run,
                    is_suspect,
                } => self.resume(ticket, members, run, is_suspect),
                // Dropping the grant lets the run go on.
                Action::Continue { ticket } => drop(self.reclaiming.remove(&ticket)),
                Action::Forget { key, uid } => self.forget(key, uid, permit).await,
                Action::Release { key, uid } => {
                    let message = "the deletion phases did not end within deletion.timeout; the object is let go";
                    self.warn_about(&key, &uid, "DeletionTimedOut", message.into());
                    self.forget(key, uid, permit).await;
                }
                Action::GiveUp {
                    key,
                    uid,
                    failure,
                    failures,
                } => self.give_up(&key, uid, &failure, failures),
                Action::Recover { key } => {
                    self.failures.retain(|failed| !names(failed, &key));
                }
                Action::Loop {
                    key,
                    is_looping: true,
                } => {
                    self.looping.insert(key);
                }
                Action::Loop {
                    key,
                    is_looping: false,
                } => {
                    self.looping.remove(&key);
                }
                Action::Bootstrapped { given_up } => {
                    self.is_bootstrapped = true;
                    let objects = self.queue.counts().objects;
                    tracing::info!(
                        configurator = %self.parts.configurator.key,
                        objects,
                        given_up,
                        "every object has had its turn"
                    );
                    let notice = Notice::Bootstrapped { objects };
                    self.parts
                        .context
                        .observer
                        .noticed(&self.parts.configurator.key, &notice);
                }
            }
        }
    }

    pub(super) fn start(&mut self, ticket: Ticket, start: RunStart, is_suspect: bool) {
        if start.chain == Chain::Phases && self.parts.context.machine.is_some() {
            return self.take_turn(ticket, start, is_suspect);
        }
        let (run, step) = Run::start(start, self.now());
        self.drive(ticket, run, step, is_suspect);
    }

    fn run_start(&self, members: Vec<Member>, chain: Chain, tries: Tries) -> RunStart {
        RunStart {
            configurator: self.parts.configurator.clone(),
            ceiling: self.ceiling(),
            module: self.parts.context.rollout.choose(&members),
            members,
            chain,
            tries,
        }
    }

    pub(super) fn resume(
        &mut self,
        ticket: Ticket,
        members: Vec<Member>,
        resting: Resting,
        is_suspect: bool,
    ) {
        match resting {
            Resting::Run(mut run) => {
                let step = run.resume();
                self.drive(ticket, *run, step, is_suspect);
            }
            Resting::Turn(tries) => {
                // The turn before has told of its change.
                let seen = |member: Member| Member {
                    event: match member.event {
                        WatchEvent::Modified => WatchEvent::Resync,
                        event => event,
                    },
                    ..member
                };
                let members = members.into_iter().map(seen).collect();
                let start = self.run_start(members, Chain::Phases, tries);
                self.take_turn(ticket, start, is_suspect);
            }
        }
    }

    pub(super) fn drive(&mut self, ticket: Ticket, run: Run, step: Step, is_suspect: bool) {
        let context = self.parts.context.clone();
        let place = Place::new(ticket, is_suspect, self.lending.clone());
        let members = run.members().to_vec();
        self.spawn(ticket, members, |permit| {
            let driving = drive(context, run, step, permit, None, place.enter());
            let report = driving.map(|outcome| RunReport {
                outcome: outcome.map(|run| Resting::Run(Box::new(run))),
                standing: None,
                awaited: Vec::new(),
            });
            report.boxed()
        });
    }

    /// In a machine, the unit is a turn of one object's machine.
    pub(super) fn take_turn(&mut self, ticket: Ticket, start: RunStart, is_suspect: bool) {
        let context = self.parts.context.clone();
        let (Some(own), Some(member)) = (context.machine.clone(), start.members.first()) else {
            return;
        };
        let inbox = self.inboxes.entry(member.key.clone()).or_default().clone();
        let standing = self.standings.remove(&member.key);
        let members = start.members.clone();
        let stop = self.stop.clone();
        let place = Place::new(ticket, is_suspect, self.lending.clone());
        self.spawn(ticket, members, |permit| {
            let parts = TurnParts {
                stop,
                context,
                own,
                start,
                inbox,
                standing,
                permit,
                place,
            };
            take_turn(parts).boxed()
        });
    }

    pub(super) fn spawn(
        &mut self,
        ticket: Ticket,
        members: Vec<Member>,
        driving: impl FnOnce(Option<Arc<Permit>>) -> BoxFuture<'static, RunReport>,
    ) {
        let claim = self.parts.claim.as_ref();
        let uids = || members.iter().map(|member| member.uid.as_str());
        let permit = claim.map(|claim| claim.claim(uids()).begin().map(Arc::new));
        self.members.insert(ticket, members);
        let permit = match permit {
            None => None,
            Some(Some(permit)) => Some(permit),
            // The shard has just gone, which this worker will hear next.
            Some(None) => {
                let ended = EndedRun {
                    ticket,
                    report: None,
                    permit: None,
                };
                return self.runs.push(std::future::ready(ended).boxed());
            }
        };
        let driving = driving(permit.clone());
        let driving = std::panic::AssertUnwindSafe(driving).catch_unwind();
        let held = permit.clone();
        let task = self.parts.tasks.spawn(TaskKind::Run, async move {
            let Some(permit) = held else {
                return driving.await.ok();
            };
            tokio::select! {
                biased;
                () = permit.lost() => None,
                report = driving => report.ok(),
            }
        });
        let ended = async move {
            EndedRun {
                ticket,
                report: task.await.ok().flatten().flatten(),
                permit,
            }
        };
        self.runs.push(ended.boxed());
    }

    pub(super) async fn forget(
        &mut self,
        key: ObjectRef,
        uid: String,
        permit: Option<&Arc<Permit>>,
    ) {
        self.standings.remove(&key);
        self.members_changed.remove(&key);
        if let Some(awaited) = &mut self.awaited {
            awaited.wait(&key, Vec::new());
        }
        let ledger = self.parts.context.ledger.as_ref();
        let records = Records::All(ledger.and_then(|ledger| ledger.end(&key, &uid)));
        if let Some(finalizer) = &self.parts.context.finalizer {
            finalizer.end(&uid);
        }
        let permit = match permit {
            Some(permit) => Some(permit.clone()),
            None => match ConfiguratorClaim::permit(self.parts.claim.as_ref(), &uid) {
                Ok(permit) => permit.map(Arc::new),
                // The next host of the shard finds the object in the records.
                Err(Elsewhere) => return,
            },
        };
        let cleanup = Box::new(Cleanup {
            key,
            uid,
            records,
            permit,
        });
        // The queue ends only after this worker.
        let _ = self.cleanups().send(cleanup).await;
    }

    /// Returns the queue of cleanups. Most workers never need it, so it begins when it is used first.
    pub(super) fn cleanups(&mut self) -> mpsc::Sender<Box<Cleanup>> {
        let WorkerParts {
            context,
            declarative,
            tasks,
            ..
        } = &self.parts;
        let cleanups = self
            .cleanups
            .get_or_insert_with(|| Cleanups::begin(context.clone(), declarative.clone(), tasks));
        cleanups.queue()
    }

    pub(super) fn give_up(
        &mut self,
        key: &ObjectRef,
        uid: String,
        failure: &Failure,
        failures: u32,
    ) {
        let configurator = &self.parts.configurator.key;
        tracing::warn!(%configurator, object = %key, fault = %failure.fault, failures, "the object is given up until it changes");
        let reason = match failure.fault.kind {
            FaultKind::RetryExceedLimit => "RetryExceedLimitError",
            _ => "RunFailed",
        };
        self.warn_about(key, &uid, reason, failure.fault.to_string());
        self.failures.retain(|failed| !names(failed, key));
        if self.failures.len() >= MAX_LISTED {
            self.failures.pop_front();
        }
        self.failures.push_back(FailureStatus {
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            uid,
            request: failure.request_name.clone(),
            kind: failure.fault.kind.name().to_owned(),
            message: failure.fault.message.chars().take(MAX_MESSAGE).collect(),
            attempts: failures,
            time: self.now().to_string(),
        });
    }
}

fn names(failed: &FailureStatus, key: &ObjectRef) -> bool {
    failed.namespace == key.namespace && failed.name == key.name
}

/// What stands in the place of the outcome of a run that broke off, which must not lose objects: by a bug of the host, or
/// because another host has a shard of its objects; those that are left are run again.
fn broken_off(members: Vec<Member>) -> RunOutcome<Resting> {
    let fault = Fault::new(
        FaultKind::ResourceGeneric,
        "the run broke off: another host took over an object of it, or the host has a bug",
    );
    let tries = Tries {
        failures: 1,
        refusals: 0,
    };
    let finish = Finish::Restart {
        after: Duration::from_secs(5),
        failure: host_failure(fault, Reaction::Restart),
        tries,
    };
    RunOutcome {
        holds_readiness: true,
        ..RunOutcome::new(RunEnd::Finished(finish), Resting::Turn(tries), members)
    }
}
