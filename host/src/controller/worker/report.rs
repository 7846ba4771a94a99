//! What a worker says of itself.

use std::collections::BTreeMap;

use configurator_core::queue::{CanaryObjects, Counts, Delayed};
use configurator_core::request::{ObjectRef, SinkName};

use super::{MAX_LISTED, MAX_MESSAGE, Worker};
use crate::controller::report::KeeperReport;
use crate::events::{HostEvent, Subject};
use crate::resource::{DelayStatus, FailureStatus};

/// What a worker says of itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WorkerReport {
    /// Whether the first listing is complete.
    pub is_listed: bool,
    /// Whether every object that existed at start has settled.
    pub is_bootstrapped: bool,
    /// Numbers of objects.
    pub counts: Counts,
    /// Whether nothing runs, is queued or waits to be tried again.
    pub is_settled: bool,
    /// Whether runs wait for objects that have been read in vain for a while.
    pub reads_in_vain: bool,
    /// The digest of the canary, and the number of objects that it handles.
    pub canary: Option<(String, CanaryObjects)>,
    /// Objects that were given up, the newest last.
    pub failures: Vec<FailureStatus>,
    /// Objects that a server has refused for now, those that were refused last at the end.
    pub delayed: Vec<DelayStatus>,
    /// Objects that keep changing because of their own runs.
    pub looping: Vec<ObjectRef>,
    /// Sinks whose server is unavailable to runs, and why.
    pub parked: BTreeMap<SinkName, String>,
    /// Why objects cannot be watched at the moment.
    pub watch_error: Option<String>,
}

impl Worker {
    pub(super) fn warn_about(&self, key: &ObjectRef, uid: &str, reason: &str, message: String) {
        let subject = Subject::watched(&self.parts.configurator, key, uid);
        self.parts
            .publisher
            .publish(HostEvent::warning(subject, reason, message));
    }

    /// Sinks whose server is unavailable to runs, and why.
    pub(super) fn parked(&self) -> BTreeMap<SinkName, String> {
        let unavailable = self.queue.unavailable();
        let refused = self.refused.iter();
        let refused =
            refused.filter(|(sink, _)| unavailable.keys().any(|server| server.sink == **sink));
        let refused = refused.map(|(sink, why)| (*sink, why.clone()));
        refused.chain(self.unread.clone()).collect()
    }

    /// Returns the digest of the canary, and the number of objects that it handles.
    pub(super) fn canary(&self, is_idle: bool) -> Option<(String, CanaryObjects)> {
        let context = &self.parts.context;
        let (_, module) = context.rollout.canary()?;
        let digest = module.digest().to_string();
        let objects = match self.queue.canary_objects() {
            // The object of a machine that rests has no entry until something happens, so the canary does not await an entry of each object.
            Some(CanaryObjects { total, .. }) if context.machine.is_some() => CanaryObjects {
                total,
                awaited: total.saturating_sub(context.rollout.canary_runs(&digest).runs),
            },
            Some(objects) => objects,
            None => is_idle.then(CanaryObjects::default)?,
        };
        Some((digest, objects))
    }

    pub(super) fn report(&mut self) {
        // Other hosts have every object.
        let is_idle = self.parts.claim.is_some() && self.held.is_empty();
        let counts = self.queue.counts();
        let delayed = match counts.delayed {
            0 => Vec::new(),
            _ => self.queue.delayed(MAX_LISTED),
        };
        let report = WorkerReport {
            canary: self.canary(is_idle),
            is_listed: self.is_listed || is_idle,
            is_bootstrapped: self.is_bootstrapped || is_idle,
            counts,
            delayed: delayed.into_iter().map(delay_status).collect(),
            is_settled: self.unlisted == 0 && (self.queue.is_settled() || is_idle),
            reads_in_vain: self.queue.reads_in_vain(),
            failures: self.failures.iter().cloned().collect(),
            looping: self.looping.iter().cloned().collect(),
            parked: self.parked(),
            watch_error: self.watch_error.clone(),
        };
        self.parts
            .context
            .metrics
            .counts(&self.parts.configurator.key, report.counts);
        self.has_said_settled = report.is_settled;
        self.parts.reporter.say(KeeperReport {
            is_bootstrapped: report.is_bootstrapped,
            is_settled: report.is_settled,
            reads_in_vain: report.reads_in_vain,
        });
        self.reports.send_if_modified(|known| {
            let is_new = *known != report;
            if is_new {
                *known = report;
            }
            is_new
        });
    }
}

fn delay_status(delayed: Delayed<'_>) -> DelayStatus {
    let Delayed {
        key,
        uid,
        failure,
        refusals,
        at,
    } = delayed;
    DelayStatus {
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        uid: uid.to_owned(),
        request: failure.request_name.clone(),
        kind: failure.fault.kind.name().to_owned(),
        message: failure.fault.message.chars().take(MAX_MESSAGE).collect(),
        refusals,
        time: at.to_string(),
    }
}
