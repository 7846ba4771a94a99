//! How a loaded module takes over: for all objects at once, or as a canary.

use std::sync::Arc;
use std::time::Duration;

use configurator_core::canary::{CanaryDecision, CanaryPolicy, RunCounts};
use configurator_guest::module::Module;
use kube::ResourceExt as _;

use super::Keeper;
use super::load::{Loaded, check_handlers, without_before};
use crate::controller::canary::{self, Canary, CanaryEnd};
use crate::controller::status::Refusal;
use crate::events::{HostEvent, Subject};
use crate::observer::Notice;
use crate::resource::{self, RolledBackStatus};

/// The time between two decisions about a canary.
const DECIDE_AGAIN: Duration = Duration::from_secs(1);

impl Keeper {
    /// Adds the stable module to what was loaded if the loaded module is to be a canary, and if the stable module fits the current Configurator.
    ///
    /// A canary that was rolled back handles no object, even if no other module is available.
    pub(super) fn beside(
        &self,
        resource: &resource::Configurator,
        mut loaded: Loaded,
    ) -> Result<Loaded, Refusal> {
        if canary::policy(resource).is_none() {
            loaded.stable = None;
            return Ok(loaded);
        }
        let running = self.worker.as_ref().map(|worker| worker.stable().clone());
        let before = running.or_else(|| loaded.stable.take());
        let candidate = loaded.module.digest();
        if before
            .as_ref()
            .is_some_and(|before| before.digest() == candidate)
        {
            return Ok(loaded);
        }
        let fits = |before: &Arc<Module>| {
            check_handlers(&loaded.configurator, Some(&self.policy.ceiling), before).is_ok()
        };
        let stable = before.filter(fits);
        let candidate = candidate.to_string();
        let is_bad = |rolled_back: &RolledBackStatus| rolled_back.digest == candidate;
        if stable.is_none() && self.known.rolled_back.as_ref().is_some_and(is_bad) {
            let why = "none is known that has the handlers which the Configurator names";
            return Err(without_before(resource, &candidate, "was rolled back", why));
        }
        loaded.stable = stable;
        Ok(loaded)
    }

    /// Runs what was loaded: for all objects at once, or as a canary if the rollout says so.
    pub(super) async fn roll_out(&mut self, resource: &resource::Configurator, mut loaded: Loaded) {
        let candidate = loaded.module.clone();
        let is_same = self.is_of_same(&loaded);
        self.promoted = None;
        let (Some(policy), Some(stable)) = (canary::policy(resource), loaded.stable.take()) else {
            self.end_canary(None);
            return match is_same {
                true => self.swap(loaded.configurator.generation, candidate),
                false => self.replace(loaded).await,
            };
        };
        if is_same {
            let digest = stable.digest().to_string();
            self.known.running = Some((loaded.configurator.generation, digest));
        } else {
            self.canary = None;
            loaded.module = stable;
            self.replace(loaded).await;
        }
        let digest = candidate.digest().to_string();
        let is_bad = |rolled_back: &RolledBackStatus| rolled_back.digest == digest;
        if self.known.rolled_back.as_ref().is_some_and(is_bad) {
            return;
        }
        let is_it = |canary: &&mut Canary| {
            canary.candidate.digest() == candidate.digest()
                && canary.policy.fraction == policy.fraction
        };
        match self.canary.as_mut().filter(is_it) {
            Some(canary) => canary.policy = policy,
            None => self.start_canary(policy, candidate),
        }
    }

    /// Starts a canary.
    fn start_canary(&mut self, policy: CanaryPolicy, candidate: Arc<Module>) {
        let Some(worker) = &mut self.worker else {
            return;
        };
        worker.start_canary(policy.fraction, candidate.clone());
        let now = self.shared.clock.now();
        let canary = Canary {
            candidate,
            policy,
            since: now,
        };
        let digest = canary.candidate.digest().to_string();
        let percent = policy.fraction.percent();
        let key = &worker.configurator.key;
        tracing::info!(configurator = %key, digest, percent, "a canary started");
        let subject = Subject::configurator(key, &worker.configurator.uid);
        let message = format!("new runs of {percent} % of the objects use {digest}");
        self.shared.publisher.publish(HostEvent {
            subject,
            is_warning: false,
            reason: "CanaryStarted".to_owned(),
            action: format!("Start canary {digest}"),
            message,
        });
        let notice = Notice::CanaryStarted { digest, percent };
        self.shared.observer.noticed(key, &notice);
        let own = canary.host_status(RunCounts::default(), None);
        let progress = canary::progress(&own, &self.voice.others());
        self.known.rolled_back = None;
        self.known.canary = Some(canary.status(progress, now));
        self.known.own_canary = Some(own);
        self.canary = Some(canary);
        self.decide_at = Some(now.after(DECIDE_AGAIN));
        self.voice.speak_soon();
    }

    /// Ends the canary, if there is one. `rolled_back` says why it was rolled back, if it was.
    fn end_canary(&mut self, rolled_back: Option<RolledBackStatus>) {
        self.known.canary = None;
        self.known.own_canary = None;
        self.known.rolled_back = rolled_back;
        self.decide_at = None;
        if self.canary.take().is_some()
            && self.known.rolled_back.is_some()
            && let Some(worker) = &mut self.worker
        {
            worker.roll_back();
        }
        self.voice.speak_soon();
    }

    /// Promotes the canary, rolls it back, or lets it go on. If hosts share the objects, the one that writes the status decides for all, and the
    /// others follow.
    pub(super) fn decide_canary(&mut self) {
        self.decide_at = None;
        let (Some(canary), Some(worker)) = (&self.canary, &self.worker) else {
            return;
        };
        let now = self.shared.clock.now();
        let digest = canary.candidate.digest().to_string();
        let own = canary.host_status(
            worker.rollout.canary_runs(&digest),
            self.known.report.canary.as_ref(),
        );
        let others = self.voice.others();
        let progress = canary::progress(&own, &others);
        let status = canary.status(progress, now);
        let decide = || match canary.policy.decide(progress, canary.since, now) {
            CanaryDecision::Wait => None,
            CanaryDecision::Promote => Some(CanaryEnd::Promote),
            CanaryDecision::RollBack => {
                Some(CanaryEnd::RollBack(canary.rolled_back(progress.counts)))
            }
        };
        let ended = canary::ended_by(&digest, &others);
        match ended.or_else(|| self.voice.speaks().then(decide).flatten()) {
            None => {
                self.decide_at = Some(now.after(DECIDE_AGAIN));
                let known = (Some(status), Some(own));
                if (&self.known.canary, &self.known.own_canary) != (&known.0, &known.1) {
                    (self.known.canary, self.known.own_canary) = known;
                    self.voice.speak_soon();
                }
            }
            Some(CanaryEnd::Promote) => {
                let candidate = canary.candidate.clone();
                let before = worker.stable().clone();
                self.swap(self.running_generation(), candidate);
                self.end_canary(None);
                self.promoted = Some((digest, before));
            }
            Some(CanaryEnd::RollBack(rolled_back)) => self.roll_back(rolled_back),
        }
    }

    /// Follows the decision of another host about the canary, or about the last canary that was promoted.
    pub(super) fn follow_other_hosts(&mut self) {
        if self.canary.is_some() {
            return self.decide_canary();
        }
        let Some((digest, before)) = &self.promoted else {
            return;
        };
        let ended = canary::ended_by(digest, &self.voice.others());
        if let Some(CanaryEnd::RollBack(rolled_back)) = ended {
            let before = before.clone();
            self.promoted = None;
            self.swap(self.running_generation(), before);
            self.roll_back(rolled_back);
        }
    }

    fn running_generation(&self) -> i64 {
        let running = self.known.running.as_ref();
        running.map_or(self.known.generation, |(generation, _)| *generation)
    }

    /// Rolls the canary back.
    fn roll_back(&mut self, rolled_back: RolledBackStatus) {
        let resource = self.desired.borrow().clone();
        let key = resource.key();
        let subject = Subject::configurator(&key, &resource.uid().unwrap_or_default());
        let RolledBackStatus { digest, message } = rolled_back.clone();
        tracing::warn!(configurator = %key, "{message}");
        let event = HostEvent::warning(subject, "ModuleRolledBack", message.clone());
        self.shared.publisher.publish(event);
        let notice = Notice::RolledBack { digest, message };
        self.shared.observer.noticed(&key, &notice);
        self.end_canary(Some(rolled_back));
    }

    /// Makes this module the stable one. New runs use it.
    fn swap(&mut self, generation: i64, module: Arc<Module>) {
        let digest = module.digest().to_string();
        self.known.running = Some((generation, digest.clone()));
        self.known.stable = Some(digest.clone());
        let Some(worker) = &mut self.worker else {
            return;
        };
        let before = worker.stable().digest().to_string();
        if before == digest && !worker.has_canary() {
            return;
        }
        worker.swap(module);
        if before == digest {
            return;
        }
        self.known.previous = Some(before.clone());
        let (key, uid) = (&worker.configurator.key, &worker.configurator.uid);
        tracing::info!(
            configurator = %key,
            before,
            digest,
            "the module was swapped"
        );
        let notice = Notice::Swapped {
            before: before.clone(),
            digest: digest.clone(),
        };
        self.shared.observer.noticed(key, &notice);
        let subject = Subject::configurator(key, uid);
        let message = format!("runs that begin are of {digest}, and no longer of {before}");
        self.shared.publisher.publish(HostEvent {
            subject,
            is_warning: false,
            reason: "ModuleSwapped".to_owned(),
            // Each swap is an Event of its own.
            action: format!("Swap to {digest}"),
            message,
        });
    }
}
