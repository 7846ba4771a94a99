//! A new module that is tried on some objects before all have it.

use std::sync::Arc;

use configurator_core::queue::Tried;
use configurator_core::time::Timestamp;
use configurator_core::trial::{Progress, Share, Tally, TrialRule};
use configurator_guest::module::Module;
use kube::ResourceExt as _;

use crate::resource::{CanaryStatus, Configurator, HostCanaryStatus, HostStatus, RolledBackStatus};

/// Names the digest that a person went back to: it takes over at once, whatever the rollout says.
pub const ROLLBACK_ANNOTATION: &str = "configurator.dev/rollback";

/// A trial under way.
pub struct Trial {
    /// The module that is tried.
    pub candidate: Arc<Module>,
    /// When it is good enough.
    pub rule: TrialRule,
    /// When it began.
    pub since: Timestamp,
}

/// What becomes of a module that was tried.
#[derive(Debug, Clone, PartialEq)]
pub enum Decided {
    /// All objects have it.
    Promote,
    /// No object has it any more.
    RollBack(RolledBackStatus),
}

/// How another module of this Configurator is tried; `None`: all objects have it at once.
#[must_use]
pub fn rule(resource: &Configurator) -> Option<TrialRule> {
    let module = &resource.spec.module;
    let canary = module.rollout.canary.as_ref()?;
    let back = resource.annotations().get(ROLLBACK_ANNOTATION);
    if back.is_some() && back == module.digest.as_ref() {
        return None;
    }
    Some(TrialRule {
        share: Share::new(canary.percent),
        duration: canary.duration.into(),
        min_runs: canary.min_runs,
        max_faults: canary.max_faults,
    })
}

impl Trial {
    /// What has come of it at this host.
    #[must_use]
    pub fn own(&self, tally: Tally, tried: Option<&(String, Tried)>) -> HostCanaryStatus {
        let digest = self.candidate.digest().to_string();
        let share = tried.and_then(|(of, share)| (*of == digest).then_some(*share));
        HostCanaryStatus {
            runs: tally.runs,
            faults: tally.faults,
            objects: share.map(|share| share.objects),
            awaited: share.unwrap_or_default().awaited,
            digest,
        }
    }

    /// As the status of the Configurator says it.
    #[must_use]
    pub fn status(&self, progress: Progress, now: Timestamp) -> CanaryStatus {
        CanaryStatus {
            digest: self.candidate.digest().to_string(),
            percent: self.rule.share.percent(),
            since: self.since.to_string(),
            runs: progress.tally.runs,
            faults: progress.tally.faults,
            awaits: self.awaits(progress, now),
        }
    }

    /// What it waits for, as people read it.
    fn awaits(&self, progress: Progress, now: Timestamp) -> String {
        let ends = self.since.after(self.rule.duration);
        let until = (now < ends).then(|| format!("until {ends}"));
        let runs = (!self.rule.is_enough(progress)).then(|| {
            let runs = self.rule.min_runs.saturating_sub(progress.tally.runs);
            match progress.share {
                Some(share) => format!(
                    "for {runs} more runs, or one of each of {} objects",
                    share.awaited
                ),
                None => format!("for {runs} more runs"),
            }
        });
        let awaited = [until, runs].into_iter().flatten();
        awaited.collect::<Vec<String>>().join(", and ")
    }

    /// What is said of it when it was not good enough.
    #[must_use]
    pub fn rolled_back(&self, tally: Tally) -> RolledBackStatus {
        let digest = self.candidate.digest().to_string();
        let Tally { runs, faults } = tally;
        let message = format!(
            "the module {digest} was tried on {} % of the objects, and {faults} of {runs} runs were faulty, where {} % may be: nothing that begins is of it any more",
            self.rule.share.percent(),
            self.rule.max_faults
        );
        RolledBackStatus { digest, message }
    }
}

/// What has come of a trial at all hosts. One that has objects and does not say may have any number of them.
#[must_use]
pub fn progress(own: &HostCanaryStatus, others: &[HostStatus]) -> Progress {
    let of_it = |other: &HostStatus| {
        let canary = other.canary.as_ref();
        let canary = canary.filter(|canary| canary.digest == own.digest);
        canary.map(at_host).unwrap_or_default()
    };
    let others = others.iter().filter(|other| other.shards > 0);
    others.map(of_it).fold(at_host(own), Progress::with)
}

fn at_host(canary: &HostCanaryStatus) -> Progress {
    Progress {
        tally: Tally {
            runs: canary.runs,
            faults: canary.faults,
        },
        share: canary.objects.map(|objects| Tried {
            objects,
            awaited: canary.awaited,
        }),
    }
}

/// What another host has decided of a module that is tried, or was. Where two have decided otherwise, one without it is the safe one.
#[must_use]
pub fn decided(digest: &str, others: &[HostStatus]) -> Option<Decided> {
    let rolled_back = others.iter().filter_map(|other| other.rolled_back.as_ref());
    let mut rolled_back = rolled_back.filter(|rolled_back| rolled_back.digest == digest);
    if let Some(rolled_back) = rolled_back.next() {
        return Some(Decided::RollBack(rolled_back.clone()));
    }
    let has_it = |other: &HostStatus| other.module_digest.as_deref() == Some(digest);
    others.iter().any(has_it).then_some(Decided::Promote)
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
    fn what_hosts_have_counted_adds_up() {
        let own = canary("new", 3);
        let of = |others: &[HostStatus]| {
            let Progress { tally, share } = progress(&own, others);
            (tally.runs, tally.faults, share)
        };
        let share = |objects, awaited| Some(Tried { objects, awaited });
        assert_eq!(of(&[]), (3, 1, share(5, 2)));
        let other = host(Some(canary("new", 4)));
        assert_eq!(of(std::slice::from_ref(&other)), (7, 2, share(10, 4)));
        // Of one that does not say, or speaks of another module, nothing is known.
        assert_eq!(of(&[other.clone(), host(None)]), (7, 2, None));
        assert_eq!(of(&[host(Some(canary("old", 4)))]), (3, 1, None));
        // One that stands by has no objects.
        let idle = HostStatus {
            shards: 0,
            ..host(None)
        };
        assert_eq!(of(&[other, idle]), (7, 2, share(10, 4)));
    }

    #[test]
    fn what_one_host_has_decided_holds_for_the_others() {
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
        let decided = |others: &[&HostStatus]| {
            let others: Vec<HostStatus> = others.iter().copied().cloned().collect();
            super::decided("new", &others)
        };
        assert_eq!(decided(&[&trying]), None);
        assert_eq!(decided(&[&trying, &promoted]), Some(Decided::Promote));
        let both = decided(&[&promoted, &rolled_back]);
        assert_eq!(both, Some(Decided::RollBack(bad)));
        assert_eq!(super::decided("another", &[rolled_back]), None);
    }
}
