//! Canaries: a new module that handles a fraction of the objects before it handles all of them.

use std::time::Duration;

use sha2::{Digest as _, Sha256};

use crate::fault::Reaction;
use crate::plan::Failure;
use crate::queue::CanaryObjects;
use crate::run::{Departed, Finish};
use crate::time::Timestamp;

/// A fraction of the objects, chosen by their uids. It has the same objects each time and on every host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fraction {
    percent: u8,
}

impl Fraction {
    /// Creates a fraction of this percentage; at most 100.
    #[must_use]
    pub fn new(percent: u8) -> Self {
        Self {
            percent: percent.min(100),
        }
    }

    /// Returns the percentage of objects that are in it.
    #[must_use]
    pub const fn percent(self) -> u8 {
        self.percent
    }

    /// Returns the larger of the two. It has all objects of the smaller one.
    #[must_use]
    pub const fn larger(self, other: Self) -> Self {
        if self.percent < other.percent {
            other
        } else {
            self
        }
    }

    /// Returns whether the object with this uid is in it. A larger fraction has all objects of a smaller one.
    #[must_use]
    pub fn contains(self, uid: &str) -> bool {
        let digest = Sha256::digest(uid.as_bytes());
        let number = digest
            .iter()
            .take(8)
            .fold(0_u64, |number, byte| (number << 8) | u64::from(*byte));
        number % 100 < u64::from(self.percent)
    }
}

/// When a canary is promoted, and when it is rolled back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CanaryPolicy {
    /// The objects that the canary handles.
    pub fraction: Fraction,
    /// The shortest time before a promotion.
    pub duration: Duration,
    /// The least number of finished runs before a promotion. If there are fewer objects in the fraction, one run of each is enough.
    pub min_runs: u32,
    /// The highest percentage of faulty runs.
    pub max_faults: u8,
}

/// The finished runs of a canary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RunCounts {
    /// Finished runs. In a machine, finished entries of handlers.
    pub runs: u32,
    /// How many of them were faulty.
    pub faults: u32,
}

/// The progress of a canary on one host, or on all hosts that share the objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CanaryProgress {
    /// Its finished runs.
    pub counts: RunCounts,
    /// The objects that it handles; `None` until all of them are known.
    pub objects: Option<CanaryObjects>,
}

/// The decision about a canary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CanaryDecision {
    /// It goes on.
    Wait,
    /// It becomes the module of all objects.
    Promote,
    /// It handles no object any longer.
    RollBack,
}

impl RunCounts {
    /// Counts a finished run: its outcome for the objects that stayed in it and for those that left it. A run that failed for a reason outside the
    /// module does not count: a conflict, a missing object, an unavailable server, or a failure of the host.
    pub fn record(&mut self, finish: &Finish, departed: &[Departed]) {
        let failure = match finish {
            Finish::Succeeded | Finish::Rest { .. } => None,
            Finish::Restart { failure, .. }
            | Finish::Failed { failure, .. }
            | Finish::Split { failure } => Some(failure),
        };
        let departed = departed.iter().map(|departed| &departed.failure);
        let is_faulty = departed.chain(failure).any(is_fault);
        if failure.is_some() && !is_faulty {
            return;
        }
        self.runs = self.runs.saturating_add(1);
        self.faults = self.faults.saturating_add(u32::from(is_faulty));
    }
}

/// Returns whether the module caused a failure: its handler failed, or sent a request that can never succeed.
fn is_fault(failure: &Failure) -> bool {
    failure.is_of_module && (failure.request_name.is_empty() || failure.reaction == Reaction::Fail)
}

impl CanaryProgress {
    /// Adds the progress on another host.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        let objects = self.objects.zip(other.objects);
        Self {
            counts: RunCounts {
                runs: self.counts.runs.saturating_add(other.counts.runs),
                faults: self.counts.faults.saturating_add(other.counts.faults),
            },
            objects: objects.map(|(one, other)| CanaryObjects {
                total: one.total.saturating_add(other.total),
                awaited: one.awaited.saturating_add(other.awaited),
            }),
        }
    }
}

impl CanaryPolicy {
    /// Decides about a canary that started at `since`.
    ///
    /// If the fraction has fewer objects than `min_runs`, one run of each is enough. An empty fraction needs none.
    /// A canary is rolled back early if it exceeds `max_faults` even if all remaining runs up to `min_runs` succeed.
    #[must_use]
    pub fn decide(
        &self,
        progress: CanaryProgress,
        since: Timestamp,
        now: Timestamp,
    ) -> CanaryDecision {
        let RunCounts { runs, faults } = progress.counts;
        let is_over = now >= since.after(self.duration) && self.has_enough_runs(progress);
        let of = if is_over {
            runs
        } else {
            runs.max(self.min_runs)
        };
        if u64::from(faults) * 100 > u64::from(self.max_faults) * u64::from(of) {
            return CanaryDecision::RollBack;
        }
        if is_over {
            return CanaryDecision::Promote;
        }
        CanaryDecision::Wait
    }

    /// Returns whether enough runs have finished for a promotion. The duration may still be too short.
    #[must_use]
    pub fn has_enough_runs(&self, progress: CanaryProgress) -> bool {
        let has_settled = progress.objects.is_some_and(|objects| objects.awaited == 0);
        progress.counts.runs >= self.min_runs || has_settled
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fault::{Fault, FaultKind};
    use crate::fixtures::{failure, member};
    use crate::retry::exhausted;
    use crate::run::host_failure;

    const POLICY: CanaryPolicy = CanaryPolicy {
        fraction: Fraction { percent: 10 },
        duration: Duration::from_secs(60),
        min_runs: 20,
        max_faults: 5,
    };

    /// Decides about a canary whose fraction has many objects that have not run yet.
    fn decided(runs: u32, faults: u32, seconds: u64) -> CanaryDecision {
        decided_with(runs, faults, seconds, Some((1000, 1000)))
    }

    fn decided_with(
        runs: u32,
        faults: u32,
        seconds: u64,
        objects: Option<(u32, u32)>,
    ) -> CanaryDecision {
        let since = Timestamp::default();
        let now = since.after(Duration::from_secs(seconds));
        let progress = CanaryProgress {
            counts: RunCounts { runs, faults },
            objects: objects.map(|(total, awaited)| CanaryObjects { total, awaited }),
        };
        POLICY.decide(progress, since, now)
    }

    #[test]
    fn a_canary_is_promoted_after_enough_runs_and_time() {
        assert_eq!(decided(20, 0, 59), CanaryDecision::Wait);
        assert_eq!(decided(19, 0, 60), CanaryDecision::Wait);
        assert_eq!(decided(20, 0, 60), CanaryDecision::Promote);
        assert_eq!(decided(20, 1, 60), CanaryDecision::Promote);
    }

    #[test]
    fn a_canary_is_rolled_back_once_it_must_exceed_the_faults() {
        assert_eq!(decided(1, 1, 0), CanaryDecision::Wait);
        assert_eq!(decided(2, 2, 0), CanaryDecision::RollBack);
        assert_eq!(decided(100, 5, 0), CanaryDecision::Wait);
        assert_eq!(decided(100, 6, 0), CanaryDecision::RollBack);
    }

    #[test]
    fn a_fraction_with_few_objects_needs_one_run_of_each() {
        assert_eq!(decided_with(2, 0, 60, Some((3, 1))), CanaryDecision::Wait);
        assert_eq!(decided_with(3, 0, 59, Some((3, 0))), CanaryDecision::Wait);
        assert_eq!(
            decided_with(3, 0, 60, Some((3, 0))),
            CanaryDecision::Promote
        );
        // A faulty canary is not promoted because it has few objects.
        assert_eq!(decided_with(1, 1, 59, Some((1, 0))), CanaryDecision::Wait);
        assert_eq!(
            decided_with(1, 1, 60, Some((1, 0))),
            CanaryDecision::RollBack
        );
        assert_eq!(decided_with(3, 0, 60, None), CanaryDecision::Wait);
    }

    #[test]
    fn an_empty_fraction_is_promoted_after_the_duration() {
        assert_eq!(decided_with(0, 0, 59, Some((0, 0))), CanaryDecision::Wait);
        assert_eq!(
            decided_with(0, 0, 60, Some((0, 0))),
            CanaryDecision::Promote
        );
    }

    #[test]
    fn the_progress_of_hosts_adds_up() {
        let of = |runs, awaited: Option<u32>| CanaryProgress {
            counts: RunCounts { runs, faults: 1 },
            objects: awaited.map(|awaited| CanaryObjects { total: 5, awaited }),
        };
        let both = of(2, Some(1)).with(of(3, Some(2)));
        let counts = RunCounts { runs: 5, faults: 2 };
        let objects = CanaryObjects {
            total: 10,
            awaited: 3,
        };
        assert_eq!((both.counts, both.objects), (counts, Some(objects)));
        assert_eq!(both.with(of(0, None)).objects, None);
    }

    #[test]
    fn without_a_least_number_of_runs_the_first_fault_decides() {
        let policy = CanaryPolicy {
            min_runs: 0,
            max_faults: 0,
            ..POLICY
        };
        let now = Timestamp::default().after(POLICY.duration);
        let decided = |runs, faults| {
            let progress = CanaryProgress {
                counts: RunCounts { runs, faults },
                objects: None,
            };
            policy.decide(progress, Timestamp::default(), now)
        };
        assert_eq!(decided(0, 0), CanaryDecision::Promote);
        assert_eq!(decided(1, 1), CanaryDecision::RollBack);
    }

    fn failed(failure: Failure) -> Finish {
        Finish::Failed {
            failure,
            failures: 1,
        }
    }

    #[test]
    fn failures_outside_the_module_do_not_count() {
        let mut runs = RunCounts::default();
        for kind in [
            FaultKind::ResourceConflict,
            FaultKind::ResourceNotFound,
            FaultKind::ApiServerUnavailable,
        ] {
            runs.record(&failed(failure(kind)), &[]);
            // Nor after the last attempt.
            runs.record(&failed(exhausted(failure(kind), 5)), &[]);
        }
        for kind in [
            FaultKind::ResourceConflict,
            FaultKind::ResourceGeneric,
            FaultKind::NotSent,
        ] {
            let of_host = host_failure(Fault::new(kind, "no"), kind.reaction());
            runs.record(&failed(of_host.clone()), &[]);
            runs.record(&failed(exhausted(of_host, 5)), &[]);
        }
        assert_eq!(runs, RunCounts::default());

        runs.record(&failed(failure(FaultKind::ResourcePermission)), &[]);
        // The server may have caused this failure, unless it repeats in every attempt.
        runs.record(&failed(failure(FaultKind::ResourceMutation)), &[]);
        let again = exhausted(failure(FaultKind::ResourceMutation), 5);
        runs.record(&failed(again), &[]);
        runs.record(&Finish::Succeeded, &[]);
        assert_eq!(runs, RunCounts { runs: 3, faults: 2 });
    }

    #[test]
    fn a_batch_that_lost_an_object_because_of_the_module_is_faulty() {
        let departed = |kind| Departed {
            member: member("a"),
            failure: failure(kind),
        };
        let mut runs = RunCounts::default();
        let conflict = departed(FaultKind::ResourceConflict);
        runs.record(&Finish::Succeeded, std::slice::from_ref(&conflict));
        assert_eq!(runs, RunCounts { runs: 1, faults: 0 });
        let refused = departed(FaultKind::ResourcePermission);
        runs.record(&Finish::Succeeded, &[conflict, refused]);
        assert_eq!(runs, RunCounts { runs: 2, faults: 1 });
    }

    #[test]
    fn a_fraction_has_about_its_percentage_of_the_objects() {
        let uids: Vec<String> = (0..10_000).map(|n| format!("uid-{n}")).collect();
        for percent in [0, 1, 10, 50, 100] {
            let fraction = Fraction::new(percent);
            let had = uids.iter().filter(|uid| fraction.contains(uid)).count();
            let wanted = usize::from(percent) * 100;
            assert!(had.abs_diff(wanted) < 150, "{had} of {wanted}");
        }
    }

    proptest! {
        #[test]
        fn a_larger_fraction_has_all_objects_of_a_smaller_one(uid: String, percent in 0_u8..100) {
            let (smaller, larger) = (Fraction::new(percent), Fraction::new(percent + 1));
            prop_assert!(!smaller.contains(&uid) || larger.contains(&uid));
            prop_assert!(Fraction::new(100).contains(&uid));
        }
    }
}
