//! How long to wait before trying again.

use std::time::Duration;

/// The longest `Retry-After` that is honored by default.
pub const DEFAULT_MAX_RETRY_AFTER: Duration = Duration::from_secs(3600);

/// How failures are retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Attempts of one run in all; at least 1.
    pub max_attempts: u32,
    /// The wait after the first failure.
    pub initial_delay: Duration,
    /// The longest wait.
    pub max_delay: Duration,
    /// The longest `Retry-After` of a server that is honored. Not the object's own: the host sets it.
    pub max_retry_after: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_attempts: 10,
            initial_delay: Duration::from_secs(1),
            max_delay: Duration::from_secs(60),
            max_retry_after: DEFAULT_MAX_RETRY_AFTER,
        }
    }
}

impl RetryPolicy {
    /// The wait after `failures` failures: doubles from `initial_delay` up to `max_delay`, of which a share
    /// between one half and the whole is taken, chosen by `seed`. Without failures there is none.
    #[must_use]
    pub fn delay(&self, failures: u32, seed: u64) -> Duration {
        if failures == 0 {
            return Duration::ZERO;
        }
        let whole = doubled(self.initial_delay, failures - 1, self.max_delay);
        jittered(whole, seed ^ u64::from(failures))
    }
}

/// `first`, doubled so many times; at most `longest`.
#[must_use]
pub fn doubled(first: Duration, times: u32, longest: Duration) -> Duration {
    let factor = 1u32.checked_shl(times).unwrap_or(u32::MAX);
    first.saturating_mul(factor).min(longest)
}

/// Between one half of `whole` and the whole of it, chosen by `seed`.
#[must_use]
pub fn jittered(whole: Duration, seed: u64) -> Duration {
    let nanos = u64::try_from(whole.as_nanos()).unwrap_or(u64::MAX);
    let half = nanos / 2;
    Duration::from_nanos(nanos - scale(mix(seed), half))
}

/// A point between zero and `whole`, chosen by `seed`.
#[must_use]
pub fn spread(whole: Duration, seed: u64) -> Duration {
    let nanos = u64::try_from(whole.as_nanos()).unwrap_or(u64::MAX);
    Duration::from_nanos(scale(mix(seed), nanos))
}

/// SplitMix64: neighbouring seeds give unrelated numbers.
#[must_use]
pub const fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn scale(random: u64, limit: u64) -> u64 {
    let product = u128::from(random) * (u128::from(limit) + 1);
    u64::try_from(product >> 64).unwrap_or(limit)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_delay_lies_between_half_and_whole_of_its_step(
            initial in 1u64..10_000, max in 1u64..1_000_000, failures in 1u32..200, seed: u64,
        ) {
            let policy = RetryPolicy {
                max_attempts: 10,
                initial_delay: Duration::from_millis(initial),
                max_delay: Duration::from_millis(max),
                ..RetryPolicy::default()
            };
            let delay = policy.delay(failures, seed);
            let step = u128::from(initial) << failures.saturating_sub(1).min(64);
            let whole = Duration::from_millis(u64::try_from(step.min(u128::from(max))).unwrap());
            prop_assert!(delay <= whole);
            prop_assert!(delay >= whole / 2);
            prop_assert_eq!(delay, policy.delay(failures, seed));
        }

        #[test]
        fn a_spread_stays_within_its_span(span in 0u64..u64::MAX, seed: u64) {
            let whole = Duration::from_nanos(span);
            prop_assert!(spread(whole, seed) <= whole);
        }
    }

    #[test]
    fn objects_that_fail_together_do_not_return_together() {
        let policy = RetryPolicy::default();
        let delays: std::collections::BTreeSet<_> =
            (0..1000).map(|seed| policy.delay(3, seed)).collect();
        assert!(delays.len() > 990);
    }
}
