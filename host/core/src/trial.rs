//! A new module that is tried on a share of the objects before all have it.

use std::time::Duration;

use sha2::{Digest as _, Sha256};

use crate::fault::Reaction;
use crate::plan::Failure;
use crate::queue::Tried;
use crate::run::{Departed, Finish};
use crate::time::Timestamp;

/// A part of the objects, chosen by their uids: the same objects each time, on every host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    percent: u8,
}

impl Share {
    /// So many of a hundred objects; 100 at most.
    #[must_use]
    pub fn new(percent: u8) -> Self {
        Self {
            percent: percent.min(100),
        }
    }

    /// How many of a hundred objects.
    #[must_use]
    pub const fn percent(self) -> u8 {
        self.percent
    }

    /// The one with more objects, which has all of the other.
    #[must_use]
    pub const fn larger(self, other: Self) -> Self {
        if self.percent < other.percent {
            other
        } else {
            self
        }
    }

    /// Whether the object of this uid is in it. A larger share has all objects of a smaller one.
    #[must_use]
    pub fn has(self, uid: &str) -> bool {
        let digest = Sha256::digest(uid.as_bytes());
        let number = digest
            .iter()
            .take(8)
            .fold(0_u64, |number, byte| (number << 8) | u64::from(*byte));
        number % 100 < u64::from(self.percent)
    }
}

/// When a module that is tried is good enough, and when it is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrialRule {
    /// The objects that it is tried on.
    pub share: Share,
    /// How long it is tried at least.
    pub duration: Duration,
    /// How many of its runs must have ended at least; where the share has too few objects for that, one of each.
    pub min_runs: u32,
    /// How many of a hundred may be faulty.
    pub max_faults: u8,
}

/// What has come of a trial so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Runs that have ended; in mode Machine, entries of handlers.
    pub runs: u32,
    /// Those of them that were faulty.
    pub faults: u32,
}

/// How far a trial is: at one host, or at all that share the objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// What has come of it.
    pub tally: Tally,
    /// The objects that it is tried on; `None`: not all of them are known yet.
    pub share: Option<Tried>,
}

/// What becomes of a module that is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgement {
    /// It is not known yet.
    Wait,
    /// All objects have it.
    Promote,
    /// No object has it.
    RollBack,
}

impl Tally {
    /// Counts what a run came to, for those that stayed in it and those that left. What is no fault of a module is not counted: a conflict,
    /// something that is not there yet, a server that is away, trouble of the host.
    pub fn count(&mut self, finish: &Finish, departed: &[Departed]) {
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

/// Whether a failure is the module's: its handler has failed, or has asked for what will never be done.
fn is_fault(failure: &Failure) -> bool {
    failure.is_of_module && (failure.request_name.is_empty() || failure.reaction == Reaction::Fail)
}

impl Progress {
    /// With what another host has come to.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        let share = self.share.zip(other.share);
        Self {
            tally: Tally {
                runs: self.tally.runs.saturating_add(other.tally.runs),
                faults: self.tally.faults.saturating_add(other.tally.faults),
            },
            share: share.map(|(one, other)| Tried {
                objects: one.objects.saturating_add(other.objects),
                awaited: one.awaited.saturating_add(other.awaited),
            }),
        }
    }
}

impl TrialRule {
    /// What becomes of the module that began to be tried at this time.
    ///
    /// Where the share has too few objects for `min_runs`, one run of each is enough; an empty one needs none.
    /// One that is bad is found before its time: when so many runs were faulty that even were all others up to `min_runs` good, there would be
    /// too many.
    #[must_use]
    pub fn judge(&self, progress: Progress, since: Timestamp, now: Timestamp) -> Judgement {
        let Tally { runs, faults } = progress.tally;
        let is_over = now >= since.after(self.duration) && self.is_enough(progress);
        let of = if is_over {
            runs
        } else {
            runs.max(self.min_runs)
        };
        if u64::from(faults) * 100 > u64::from(self.max_faults) * u64::from(of) {
            return Judgement::RollBack;
        }
        if is_over {
            return Judgement::Promote;
        }
        Judgement::Wait
    }

    /// Whether it has run often enough to be judged, however long it is tried.
    #[must_use]
    pub fn is_enough(&self, progress: Progress) -> bool {
        let has_settled = progress.share.is_some_and(|share| share.awaited == 0);
        progress.tally.runs >= self.min_runs || has_settled
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

    const RULE: TrialRule = TrialRule {
        share: Share { percent: 10 },
        duration: Duration::from_secs(60),
        min_runs: 20,
        max_faults: 5,
    };

    /// Of a share that is too large to be awaited.
    fn judged(runs: u32, faults: u32, seconds: u64) -> Judgement {
        judged_of(runs, faults, seconds, Some((1000, 1000)))
    }

    fn judged_of(runs: u32, faults: u32, seconds: u64, share: Option<(u32, u32)>) -> Judgement {
        let since = Timestamp::default();
        let now = since.after(Duration::from_secs(seconds));
        let progress = Progress {
            tally: Tally { runs, faults },
            share: share.map(|(objects, awaited)| Tried { objects, awaited }),
        };
        RULE.judge(progress, since, now)
    }

    #[test]
    fn it_is_promoted_when_it_was_tried_enough() {
        assert_eq!(judged(20, 0, 59), Judgement::Wait);
        assert_eq!(judged(19, 0, 60), Judgement::Wait);
        assert_eq!(judged(20, 0, 60), Judgement::Promote);
        assert_eq!(judged(20, 1, 60), Judgement::Promote);
    }

    #[test]
    fn it_is_rolled_back_as_soon_as_it_cannot_be_good_enough() {
        assert_eq!(judged(1, 1, 0), Judgement::Wait);
        assert_eq!(judged(2, 2, 0), Judgement::RollBack);
        assert_eq!(judged(100, 5, 0), Judgement::Wait);
        assert_eq!(judged(100, 6, 0), Judgement::RollBack);
    }

    #[test]
    fn a_share_with_few_objects_needs_one_run_of_each() {
        assert_eq!(judged_of(2, 0, 60, Some((3, 1))), Judgement::Wait);
        assert_eq!(judged_of(3, 0, 59, Some((3, 0))), Judgement::Wait);
        assert_eq!(judged_of(3, 0, 60, Some((3, 0))), Judgement::Promote);
        // What is bad is not good because it is little.
        assert_eq!(judged_of(1, 1, 59, Some((1, 0))), Judgement::Wait);
        assert_eq!(judged_of(1, 1, 60, Some((1, 0))), Judgement::RollBack);
        assert_eq!(judged_of(3, 0, 60, None), Judgement::Wait);
    }

    #[test]
    fn an_empty_share_is_promoted_when_its_time_is_over() {
        assert_eq!(judged_of(0, 0, 59, Some((0, 0))), Judgement::Wait);
        assert_eq!(judged_of(0, 0, 60, Some((0, 0))), Judgement::Promote);
    }

    #[test]
    fn what_hosts_have_come_to_adds_up() {
        let of = |runs, share: Option<u32>| Progress {
            tally: Tally { runs, faults: 1 },
            share: share.map(|awaited| Tried {
                objects: 5,
                awaited,
            }),
        };
        let both = of(2, Some(1)).with(of(3, Some(2)));
        let tally = Tally { runs: 5, faults: 2 };
        let share = Tried {
            objects: 10,
            awaited: 3,
        };
        assert_eq!((both.tally, both.share), (tally, Some(share)));
        assert_eq!(both.with(of(0, None)).share, None);
    }

    #[test]
    fn without_a_least_number_of_runs_the_first_fault_decides() {
        let rule = TrialRule {
            min_runs: 0,
            max_faults: 0,
            ..RULE
        };
        let now = Timestamp::default().after(RULE.duration);
        let tally = |runs, faults| {
            let progress = Progress {
                tally: Tally { runs, faults },
                share: None,
            };
            rule.judge(progress, Timestamp::default(), now)
        };
        assert_eq!(tally(0, 0), Judgement::Promote);
        assert_eq!(tally(1, 1), Judgement::RollBack);
    }

    fn failed(failure: Failure) -> Finish {
        Finish::Failed {
            failure,
            failures: 1,
        }
    }

    #[test]
    fn what_is_no_fault_of_the_module_does_not_count() {
        let mut tally = Tally::default();
        for kind in [
            FaultKind::ResourceConflict,
            FaultKind::ResourceNotFound,
            FaultKind::ApiServerUnavailable,
        ] {
            tally.count(&failed(failure(kind)), &[]);
            // Nor when it has been tried as often as it may.
            tally.count(&failed(exhausted(failure(kind), 5)), &[]);
        }
        for kind in [
            FaultKind::ResourceConflict,
            FaultKind::ResourceGeneric,
            FaultKind::NotSent,
        ] {
            let of_host = host_failure(Fault::new(kind, "no"), kind.reaction());
            tally.count(&failed(of_host.clone()), &[]);
            tally.count(&failed(exhausted(of_host, 5)), &[]);
        }
        assert_eq!(tally, Tally::default());

        tally.count(&failed(failure(FaultKind::ResourcePermission)), &[]);
        // A server may have had trouble of its own, until it says the same every time.
        tally.count(&failed(failure(FaultKind::ResourceMutation)), &[]);
        let again = exhausted(failure(FaultKind::ResourceMutation), 5);
        tally.count(&failed(again), &[]);
        tally.count(&Finish::Succeeded, &[]);
        assert_eq!(tally, Tally { runs: 3, faults: 2 });
    }

    #[test]
    fn a_batch_that_has_lost_an_object_by_the_module_is_faulty() {
        let departed = |kind| Departed {
            member: member("a"),
            failure: failure(kind),
        };
        let mut tally = Tally::default();
        let conflict = departed(FaultKind::ResourceConflict);
        tally.count(&Finish::Succeeded, std::slice::from_ref(&conflict));
        assert_eq!(tally, Tally { runs: 1, faults: 0 });
        let refused = departed(FaultKind::ResourcePermission);
        tally.count(&Finish::Succeeded, &[conflict, refused]);
        assert_eq!(tally, Tally { runs: 2, faults: 1 });
    }

    #[test]
    fn a_share_has_about_as_many_objects_as_it_should() {
        let uids: Vec<String> = (0..10_000).map(|n| format!("uid-{n}")).collect();
        for percent in [0, 1, 10, 50, 100] {
            let share = Share::new(percent);
            let had = uids.iter().filter(|uid| share.has(uid)).count();
            let wanted = usize::from(percent) * 100;
            assert!(had.abs_diff(wanted) < 150, "{had} of {wanted}");
        }
    }

    proptest! {
        #[test]
        fn a_larger_share_has_what_a_smaller_one_has(uid: String, percent in 0_u8..100) {
            let (smaller, larger) = (Share::new(percent), Share::new(percent + 1));
            prop_assert!(!smaller.has(&uid) || larger.has(&uid));
            prop_assert!(Share::new(100).has(&uid));
        }
    }
}
