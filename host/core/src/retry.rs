//! The retry policy: what follows a failure. Runs, the queue, machines and declarative requests all ask [`decide`].

use std::time::Duration;

use crate::backoff::RetryPolicy;
use crate::fault::{Fault, FaultKind, Reaction};
use crate::plan::Failure;

/// What follows a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Call the same handler again with the same input, after this long.
    Resend {
        /// The wait.
        after: Duration,
    },
    /// Begin again at the root phase with the newest object, after this long.
    Restart {
        /// The wait.
        after: Duration,
    },
    /// Wait for the sink.
    Park {
        /// How long the sink asked to be left alone.
        retry_after: Option<Duration>,
    },
    /// Stop trying.
    Fail,
}

/// A decision, with what is known of the object after the failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// What follows.
    pub decision: Decision,
    /// The failure; [`FaultKind::RetryExceedLimit`] when the attempts are used up.
    pub failure: Failure,
    /// Attempts that have failed, this one included if it counts.
    pub failures: u32,
}

/// Decides what follows a failure, after so many `failures` before it. `jitter` chooses the wait, so that objects which fail
/// together do not come back together.
///
/// A wait that the server or the handler asked for takes the place of the backoff. Parking counts no failure.
#[must_use]
pub fn decide(failure: Failure, failures: u32, policy: &RetryPolicy, jitter: u64) -> Verdict {
    let retry_after = failure.fault.retry_after;
    if failure.reaction == Reaction::Park {
        return Verdict {
            decision: Decision::Park { retry_after },
            failure,
            failures,
        };
    }
    let failures = failures.saturating_add(1);
    let after = retry_after.unwrap_or_else(|| policy.delay(failures, jitter));
    let is_exhausted = failures >= policy.max_attempts;
    let decision = match failure.reaction {
        Reaction::Resend if !is_exhausted => Decision::Resend { after },
        Reaction::Restart if !is_exhausted => Decision::Restart { after },
        Reaction::Resend | Reaction::Restart | Reaction::Park | Reaction::Fail => Decision::Fail,
    };
    let failure = match failure.reaction {
        Reaction::Resend | Reaction::Restart if is_exhausted => exhausted(failure, failures),
        _ => failure,
    };
    Verdict {
        decision,
        failure,
        failures,
    }
}

/// The failure of an object whose attempts are used up.
#[must_use]
pub(crate) fn exhausted(failure: Failure, failures: u32) -> Failure {
    let attempts = if failures == 1 { "attempt" } else { "attempts" };
    let message = format!(
        "still failing after {failures} {attempts}: {}",
        failure.fault
    );
    Failure {
        fault: Fault {
            kind: FaultKind::RetryExceedLimit,
            message,
            ..failure.fault
        },
        reaction: Reaction::Fail,
        ..failure
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::fixtures::failure;

    const POLICY: RetryPolicy = RetryPolicy {
        max_attempts: 3,
        initial_delay: Duration::from_secs(1),
        max_delay: Duration::from_secs(60),
    };

    fn line(failure: Failure, failures: u32) -> String {
        let kind = failure.fault.kind;
        let verdict = decide(failure, failures, &POLICY, 7);
        let millis = |span: Duration| format!("{} ms", span.as_millis());
        let decision = match verdict.decision {
            Decision::Resend { after } => format!("resend after {}", millis(after)),
            Decision::Restart { after } => format!("restart after {}", millis(after)),
            Decision::Park { retry_after } => {
                format!(
                    "park{}",
                    retry_after.map_or(String::new(), |wait| format!(" for {}", millis(wait)))
                )
            }
            Decision::Fail => format!("fail with {}", verdict.failure.fault),
        };
        format!("{kind}: {decision}, {} failed\n", verdict.failures)
    }

    fn check(failures: impl IntoIterator<Item = (Failure, u32)>, expected: Expect) {
        let table: String = failures
            .into_iter()
            .map(|(failure, failures)| line(failure, failures))
            .collect();
        expected.assert_eq(&table);
    }

    #[test]
    fn every_kind_has_a_decision() {
        check(
            FaultKind::ALL.map(|kind| (failure(kind), 0)),
            expect![[r#"
                RetryExceedLimit: fail with RetryExceedLimit: it failed, 1 failed
                ResourceGeneric: fail with ResourceGeneric: it failed, 1 failed
                ResourceNotFound: resend after 630 ms, 1 failed
                ResourceConflict: restart after 630 ms, 1 failed
                ResourceMutation: resend after 630 ms, 1 failed
                ResourcePermission: fail with ResourcePermission: it failed, 1 failed
                UnsupportedResourceOperation: fail with UnsupportedResourceOperation: it failed, 1 failed
                ApiServerUnavailable: park, 0 failed
                ConfigstoreUnavailable: park, 0 failed
                SecretstoreUnavailable: park, 0 failed
                HttpUnavailable: park, 0 failed
                OutcomeUnknown: fail with OutcomeUnknown: it failed, 1 failed
                NotSent: fail with NotSent: it failed, 1 failed
            "#]],
        );
    }

    #[test]
    fn waits_grow_until_the_attempts_are_used_up() {
        use FaultKind::{ResourceConflict, ResourceMutation, SecretstoreUnavailable};
        let kinds = [ResourceMutation, ResourceConflict, SecretstoreUnavailable];
        let failures =
            kinds.map(|kind| [0, 1, 2, u32::MAX].map(|failures| (failure(kind), failures)));
        check(
            failures.into_iter().flatten(),
            expect![[r#"
            ResourceMutation: resend after 630 ms, 1 failed
            ResourceMutation: resend after 1613 ms, 2 failed
            ResourceMutation: fail with RetryExceedLimit: still failing after 3 attempts: ResourceMutation: it failed, 3 failed
            ResourceMutation: fail with RetryExceedLimit: still failing after 4294967295 attempts: ResourceMutation: it failed, 4294967295 failed
            ResourceConflict: restart after 630 ms, 1 failed
            ResourceConflict: restart after 1613 ms, 2 failed
            ResourceConflict: fail with RetryExceedLimit: still failing after 3 attempts: ResourceConflict: it failed, 3 failed
            ResourceConflict: fail with RetryExceedLimit: still failing after 4294967295 attempts: ResourceConflict: it failed, 4294967295 failed
            SecretstoreUnavailable: park, 0 failed
            SecretstoreUnavailable: park, 1 failed
            SecretstoreUnavailable: park, 2 failed
            SecretstoreUnavailable: park, 4294967295 failed
        "#]],
        );
    }

    #[test]
    fn a_wait_that_was_asked_for_takes_the_place_of_the_backoff() {
        use FaultKind::{ApiServerUnavailable, ResourceConflict, ResourceMutation};
        let asked = |kind| {
            let mut failure = failure(kind);
            failure.fault.retry_after = Some(Duration::from_secs(99));
            (failure, 1)
        };
        check(
            [ResourceMutation, ResourceConflict, ApiServerUnavailable].map(asked),
            expect![[r#"
                ResourceMutation: resend after 99000 ms, 2 failed
                ResourceConflict: restart after 99000 ms, 2 failed
                ApiServerUnavailable: park for 99000 ms, 1 failed
            "#]],
        );
    }
}
