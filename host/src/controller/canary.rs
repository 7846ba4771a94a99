//! Canaries: a new module handles a fraction of the objects before it handles all of them.

use std::sync::Arc;

use configurator_core::canary::{CanaryPolicy, CanaryProgress, Fraction, RunCounts};
use configurator_core::queue::CanaryObjects;
use configurator_core::time::Timestamp;
use configurator_guest::module::Module;
use kube::ResourceExt as _;

use crate::resource::{CanaryStatus, Configurator, HostCanaryStatus, HostStatus, RolledBackStatus};

/// The digest that `configurator rollback` went back to. It takes over for all objects at once, whatever `spec.module.rollout` says.
pub const ROLLBACK_ANNOTATION: &str = "configurator.dev/rollback";

/// A canary that handles objects.
pub struct Canary {
    /// The new module.
    pub candidate: Arc<Module>,
    /// When it is promoted or rolled back.
    pub policy: CanaryPolicy,
    /// When it started.
    pub since: Timestamp,
}

/// How a canary ended.
#[derive(Debug, Clone, PartialEq)]
pub enum CanaryEnd {
    /// It became the module of all objects.
    Promote,
    /// It handles no object any longer.
    RollBack(RolledBackStatus),
}

/// Returns how a new module of this Configurator is rolled out as a canary; `None`: it handles all objects at once.
#[must_use]
pub fn policy(resource: &Configurator) -> Option<CanaryPolicy> {
    let module = &resource.spec.module;
    let canary = module.rollout.canary.as_ref()?;
    let back = resource.annotations().get(ROLLBACK_ANNOTATION);
    if back.is_some() && back == module.digest.as_ref() {
        return None;
    }
    Some(CanaryPolicy {
        fraction: Fraction::new(canary.percent),
        duration: canary.duration.into(),
        min_runs: canary.min_runs,
        max_faults: canary.max_faults,
    })
}

impl Canary {
    /// Returns its progress on this host.
    #[must_use]
    pub fn host_status(
        &self,
        counts: RunCounts,
        objects: Option<&(String, CanaryObjects)>,
    ) -> HostCanaryStatus {
        let digest = self.candidate.digest().to_string();
        let objects = objects.and_then(|(of, objects)| (*of == digest).then_some(*objects));
        HostCanaryStatus {
            runs: counts.runs,
            faults: counts.faults,
            objects: objects.map(|objects| objects.total),
            awaited: objects.unwrap_or_default().awaited,
            digest,
        }
    }

    /// Returns its entry in the status of the Configurator.
    #[must_use]
    pub fn status(&self, progress: CanaryProgress, now: Timestamp) -> CanaryStatus {
        CanaryStatus {
            digest: self.candidate.digest().to_string(),
            percent: self.policy.fraction.percent(),
            since: self.since.to_string(),
            runs: progress.counts.runs,
            faults: progress.counts.faults,
            awaits: self.awaits(progress, now),
        }
    }

    /// Describes what its promotion waits for.
    fn awaits(&self, progress: CanaryProgress, now: Timestamp) -> String {
        let ends = self.since.after(self.policy.duration);
        let until = (now < ends).then(|| format!("until {ends}"));
        let runs = (!self.policy.has_enough_runs(progress)).then(|| {
            let runs = self.policy.min_runs.saturating_sub(progress.counts.runs);
            match progress.objects {
                Some(objects) => format!(
                    "for {runs} more runs, or one of each of {} objects",
                    objects.awaited
                ),
                None => format!("for {runs} more runs"),
            }
        });
        let awaited = [until, runs].into_iter().flatten();
        awaited.collect::<Vec<String>>().join(", and ")
    }

    /// Describes why it was rolled back after these runs.
    #[must_use]
    pub fn rolled_back(&self, counts: RunCounts) -> RolledBackStatus {
        let digest = self.candidate.digest().to_string();
        let RunCounts { runs, faults } = counts;
        let message = format!(
            "the canary {digest} handled {} % of the objects, and {faults} of its {runs} runs failed; at most {} % may fail, so new runs no longer use it",
            self.policy.fraction.percent(),
            self.policy.max_faults
        );
        RolledBackStatus { digest, message }
    }
}

/// Adds the progress of a canary on all hosts. The number of its objects is unknown as long as a host that has shards does not report on it.
#[must_use]
pub fn progress(own: &HostCanaryStatus, others: &[HostStatus]) -> CanaryProgress {
    let of_it = |other: &HostStatus| {
        let canary = other.canary.as_ref();
        let canary = canary.filter(|canary| canary.digest == own.digest);
        canary.map(at_host).unwrap_or_default()
    };
    let others = others.iter().filter(|other| other.shards > 0);
    others.map(of_it).fold(at_host(own), CanaryProgress::with)
}

fn at_host(canary: &HostCanaryStatus) -> CanaryProgress {
    CanaryProgress {
        counts: RunCounts {
            runs: canary.runs,
            faults: canary.faults,
        },
        objects: canary.objects.map(|total| CanaryObjects {
            total,
            awaited: canary.awaited,
        }),
    }
}

/// Returns how another host ended the canary with this digest, if one did. A rollback wins over a promotion.
#[must_use]
pub fn ended_by(digest: &str, others: &[HostStatus]) -> Option<CanaryEnd> {
    let rolled_back = others.iter().filter_map(|other| other.rolled_back.as_ref());
    let mut rolled_back = rolled_back.filter(|rolled_back| rolled_back.digest == digest);
    if let Some(rolled_back) = rolled_back.next() {
        return Some(CanaryEnd::RollBack(rolled_back.clone()));
    }
    let has_it = |other: &HostStatus| other.module_digest.as_deref() == Some(digest);
    others.iter().any(has_it).then_some(CanaryEnd::Promote)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canary(digest: &str, runs: u32) -> HostCanaryStatus {
        HostCanaryStatus {
            digest: digest.to_owned(),
            runs,
            faults: 1,
            objects: Some(5),
            awaited: 2,
        }
    }

    fn host(canary: Option<HostCanaryStatus>) -> HostStatus {
        HostStatus {
            shards: 1,
            canary,
            ..HostStatus::default()
        }
    }

    #[test]
    fn the_progress_of_hosts_adds_up() {
        let own = canary("new", 3);
        let of = |others: &[HostStatus]| {
            let CanaryProgress { counts, objects } = progress(&own, others);
            (counts.runs, counts.faults, objects)
        };
        let objects = |total, awaited| Some(CanaryObjects { total, awaited });
        assert_eq!(of(&[]), (3, 1, objects(5, 2)));
        let other = host(Some(canary("new", 4)));
        assert_eq!(of(std::slice::from_ref(&other)), (7, 2, objects(10, 4)));
        // A host that does not report, or reports on another module, makes the number unknown.
        assert_eq!(of(&[other.clone(), host(None)]), (7, 2, None));
        assert_eq!(of(&[host(Some(canary("old", 4)))]), (3, 1, None));
        // A host without shards has no objects.
        let idle = HostStatus {
            shards: 0,
            ..host(None)
        };
        assert_eq!(of(&[other, idle]), (7, 2, objects(10, 4)));
    }

    #[test]
    fn the_decision_of_one_host_holds_for_the_others() {
        let promoted = HostStatus {
            module_digest: Some("new".to_owned()),
            ..host(None)
        };
        let bad = RolledBackStatus {
            digest: "new".to_owned(),
            message: "bad".to_owned(),
        };
        let rolled_back = HostStatus {
            module_digest: Some("old".to_owned()),
            rolled_back: Some(bad.clone()),
            ..host(None)
        };
        let trying = HostStatus {
            module_digest: Some("old".to_owned()),
            ..host(Some(canary("new", 1)))
        };
        let ended = |others: &[&HostStatus]| {
            let others: Vec<HostStatus> = others.iter().copied().cloned().collect();
            ended_by("new", &others)
        };
        assert_eq!(ended(&[&trying]), None);
        assert_eq!(ended(&[&trying, &promoted]), Some(CanaryEnd::Promote));
        let both = ended(&[&promoted, &rolled_back]);
        assert_eq!(both, Some(CanaryEnd::RollBack(bad)));
        assert_eq!(ended_by("another", &[rolled_back]), None);
    }
}
