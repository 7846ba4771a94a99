//! A new module that is tried on a share of the objects before all have it.

use std::time::Duration;

use sha2::{Digest as _, Sha256};

use crate::fault::Reaction;
use crate::plan::Failure;
use crate::run::Finish;
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
    /// How many of its runs must have ended at least.
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
    /// Counts what a run came to. What is no fault of a module is not counted: a conflict, something that is not there yet, a server that is away.
    pub fn count(&mut self, finish: &Finish) {
        let failure = match finish {
            Finish::Succeeded | Finish::Rest { .. } => None,
            Finish::Restart { failure, .. }
            | Finish::Failed { failure, .. }
            | Finish::Split { failure } => Some(failure),
        };
        if failure.is_some_and(|failure| !is_fault(failure)) {
            return;
        }
        self.runs = self.runs.saturating_add(1);
        self.faults = self.faults.saturating_add(u32::from(failure.is_some()));
    }
}

/// Whether a failure is the module's: its handler has failed, or has asked for what will never be done.
fn is_fault(failure: &Failure) -> bool {
    failure.request_name.is_empty() || failure.reaction == Reaction::Fail
}

impl TrialRule {
    /// What becomes of the module that began to be tried at this time.
    ///
    /// One that is bad is found before its time: when so many runs were faulty that even were all others up to `min_runs` good, there would be
    /// too many.
    #[must_use]
    pub fn judge(&self, tally: Tally, since: Timestamp, now: Timestamp) -> Judgement {
        let of = u64::from(tally.runs.max(self.min_runs).max(1));
        if u64::from(tally.faults) * 100 > u64::from(self.max_faults) * of {
            return Judgement::RollBack;
        }
        if tally.runs >= self.min_runs && now >= since.after(self.duration) {
            return Judgement::Promote;
        }
        Judgement::Wait
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fault::{Fault, FaultKind};

    const RULE: TrialRule = TrialRule {
        share: Share { percent: 10 },
        duration: Duration::from_secs(60),
        min_runs: 20,
        max_faults: 5,
    };

    fn judged(runs: u32, faults: u32, seconds: u64) -> Judgement {
        let since = Timestamp::default();
        let now = since.after(Duration::from_secs(seconds));
        RULE.judge(Tally { runs, faults }, since, now)
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
    fn without_a_least_number_of_runs_the_first_fault_decides() {
        let rule = TrialRule {
            min_runs: 0,
            max_faults: 0,
            ..RULE
        };
        let now = Timestamp::default().after(RULE.duration);
        let tally = |runs, faults| rule.judge(Tally { runs, faults }, Timestamp::default(), now);
        assert_eq!(tally(0, 0), Judgement::Promote);
        assert_eq!(tally(1, 1), Judgement::RollBack);
    }

    #[test]
    fn what_is_no_fault_of_the_module_does_not_count() {
        let failed = |name: &str, kind| {
            let failure = Failure {
                request_name: name.to_owned(),
                fault: Fault::new(kind, "no"),
                reaction: kind.reaction(),
            };
            Finish::Failed {
                failure,
                failures: 1,
            }
        };
        let mut tally = Tally::default();
        tally.count(&failed("put", FaultKind::ResourceConflict));
        tally.count(&failed("put", FaultKind::ApiServerUnavailable));
        assert_eq!(tally, Tally::default());
        tally.count(&failed("put", FaultKind::ResourcePermission));
        tally.count(&failed("", FaultKind::ResourceGeneric));
        tally.count(&Finish::Succeeded);
        assert_eq!(tally, Tally { runs: 3, faults: 2 });
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
