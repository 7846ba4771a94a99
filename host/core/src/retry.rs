//! The retry policy: what follows a failure. Runs, the queue, machines and declarative requests all ask [`decide`].

use std::time::Duration;

use crate::backoff::RetryPolicy;
use crate::fault::{Fault, FaultKind, Reaction};
use crate::plan::Failure;

/// How often an object was tried in vain since it last changed or went through.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tries {
    /// Attempts that have failed.
    pub failures: u32,
    /// How often in a row a server has refused it for now, or has not answered. No attempt is charged for it.
    pub refusals: u32,
}

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
    /// Rest for so long, and for as long as the server is unavailable.
    Park {
        /// The wait.
        after: Duration,
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
    /// How often it was tried, this time included.
    pub tries: Tries,
}

/// Decides what follows a failure, after so many `tries` before it. `jitter` chooses the wait, so that objects which fail
/// together do not come back together.
///
/// A failure that parks is a refusal: it counts no attempt, and its waits grow by themselves. A wait that the server or the
/// handler asked for takes the place of the backoff; after a refusal the longer of the two counts, since nothing ends them.
#[must_use]
pub fn decide(failure: Failure, tries: Tries, policy: &RetryPolicy, jitter: u64) -> Verdict {
    let wish = failure.retry_after(policy);
    if failure.reaction == Reaction::Park {
        let refusals = tries.refusals.saturating_add(1);
        let own = policy.delay(refusals, jitter);
        let after = wish.map_or(own, |wish| wish.max(own));
        return Verdict {
            decision: Decision::Park { after },
            failure,
            tries: Tries { refusals, ..tries },
        };
    }
    let failures = tries.failures.saturating_add(1);
    let after = wish.unwrap_or_else(|| policy.delay(failures, jitter));
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
        tries: Tries { failures, ..tries },
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
        max_retry_after: Duration::from_secs(90),
    };

    fn line(failure: Failure, count: u32) -> String {
        let kind = failure.fault.kind;
        let tries = Tries {
            failures: count,
            refusals: count,
        };
        let verdict = decide(failure, tries, &POLICY, 7);
        let millis = |span: Duration| format!("{} ms", span.as_millis());
        let decision = match verdict.decision {
            Decision::Resend { after } => format!("resend after {}", millis(after)),
            Decision::Restart { after } => format!("restart after {}", millis(after)),
            Decision::Park { after } => format!("park for {}", millis(after)),
            Decision::Fail => format!("fail with {}", verdict.failure.fault),
        };
        let Tries { failures, refusals } = verdict.tries;
        format!("{kind}: {decision}, {failures} failed, {refusals} refused\n")
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
                RetryExceedLimit: fail with RetryExceedLimit: it failed, 1 failed, 0 refused
                ResourceGeneric: fail with ResourceGeneric: it failed, 1 failed, 0 refused
                ResourceNotFound: resend after 630 ms, 1 failed, 0 refused
                ResourceConflict: restart after 630 ms, 1 failed, 0 refused
                ResourceMutation: resend after 630 ms, 1 failed, 0 refused
                ResourcePermission: fail with ResourcePermission: it failed, 1 failed, 0 refused
                UnsupportedResourceOperation: fail with UnsupportedResourceOperation: it failed, 1 failed, 0 refused
                ApiServerUnavailable: park for 630 ms, 0 failed, 1 refused
                ConfigstoreUnavailable: park for 630 ms, 0 failed, 1 refused
                SecretstoreUnavailable: park for 630 ms, 0 failed, 1 refused
                HttpUnavailable: park for 630 ms, 0 failed, 1 refused
                ExtensionUnavailable: park for 630 ms, 0 failed, 1 refused
                OutcomeUnknown: fail with OutcomeUnknown: it failed, 1 failed, 0 refused
                NotSent: fail with NotSent: it failed, 1 failed, 0 refused
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
                ResourceMutation: resend after 630 ms, 1 failed, 0 refused
                ResourceMutation: resend after 1613 ms, 2 failed, 1 refused
                ResourceMutation: fail with RetryExceedLimit: still failing after 3 attempts: ResourceMutation: it failed, 3 failed, 2 refused
                ResourceMutation: fail with RetryExceedLimit: still failing after 4294967295 attempts: ResourceMutation: it failed, 4294967295 failed, 4294967295 refused
                ResourceConflict: restart after 630 ms, 1 failed, 0 refused
                ResourceConflict: restart after 1613 ms, 2 failed, 1 refused
                ResourceConflict: fail with RetryExceedLimit: still failing after 3 attempts: ResourceConflict: it failed, 3 failed, 2 refused
                ResourceConflict: fail with RetryExceedLimit: still failing after 4294967295 attempts: ResourceConflict: it failed, 4294967295 failed, 4294967295 refused
                SecretstoreUnavailable: park for 630 ms, 0 failed, 1 refused
                SecretstoreUnavailable: park for 1613 ms, 1 failed, 2 refused
                SecretstoreUnavailable: park for 3137 ms, 2 failed, 3 refused
                SecretstoreUnavailable: park for 49445 ms, 4294967295 failed, 4294967295 refused
            "#]],
        );
    }

    #[test]
    fn a_wait_that_was_asked_for_is_honored_up_to_its_cap() {
        use FaultKind::{ApiServerUnavailable, ResourceConflict, ResourceMutation};
        let asked = |kind, seconds| {
            let mut failure = failure(kind);
            failure.fault.retry_after = Some(Duration::from_secs(seconds));
            (failure, 1)
        };
        let of_handler = |seconds| {
            let fault = Fault::new(FaultKind::ResourceGeneric, "not yet")
                .with_retry_after(Some(Duration::from_secs(seconds)));
            let failure = Failure {
                request_name: String::new(),
                reaction: Reaction::Restart,
                is_of_module: true,
                ..Failure::of_request("", fault)
            };
            (failure, 1)
        };
        let age = u64::from(u32::MAX);
        check(
            [ResourceMutation, ResourceConflict, ApiServerUnavailable]
                .into_iter()
                .flat_map(|kind| [0, 80, age].map(|seconds| asked(kind, seconds)))
                .chain([of_handler(80), of_handler(7200)]),
            expect![[r#"
                ResourceMutation: resend after 0 ms, 2 failed, 1 refused
                ResourceMutation: resend after 80000 ms, 2 failed, 1 refused
                ResourceMutation: resend after 90000 ms, 2 failed, 1 refused
                ResourceConflict: restart after 0 ms, 2 failed, 1 refused
                ResourceConflict: restart after 80000 ms, 2 failed, 1 refused
                ResourceConflict: restart after 90000 ms, 2 failed, 1 refused
                ApiServerUnavailable: park for 1613 ms, 1 failed, 2 refused
                ApiServerUnavailable: park for 80000 ms, 1 failed, 2 refused
                ApiServerUnavailable: park for 90000 ms, 1 failed, 2 refused
                ResourceGeneric: restart after 80000 ms, 2 failed, 1 refused
                ResourceGeneric: restart after 7200000 ms, 2 failed, 1 refused
            "#]],
        );
    }
}
