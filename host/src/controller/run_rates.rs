//! Limits how often runs of a namespace begin: the quota `runsPerSecond`.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use configurator_core::queue::pace::Pace;
use configurator_core::time::Timestamp;

use super::policies::Policies;
use crate::shards::Shards;

/// How much of the quota may be used at once after a pause.
const BURST: Duration = Duration::from_secs(1);

/// The run rates of all namespaces on this host. Clones share them.
#[derive(Clone)]
pub(crate) struct RunRates {
    /// Hosts that share the objects also share the quota, in the same proportion.
    shards: Option<Arc<Shards>>,
    /// When the next run of each namespace is due at a constant rate, in microseconds.
    due: Arc<Mutex<HashMap<String, i64>>>,
}

impl RunRates {
    pub(crate) fn new(shards: Option<Arc<Shards>>) -> Self {
        Self {
            shards,
            due: Arc::default(),
        }
    }

    /// Reserves the next free time for a run of the namespace. A time in the past means that the run may begin at once.
    fn reserve(&self, namespace: &str, per_second: u32, now: Timestamp) -> Timestamp {
        let interval = 1_000_000 / i64::from(per_second.max(1));
        let interval = match &self.shards {
            None => interval,
            Some(shards) => {
                let held = i64::try_from(shards.held().len()).unwrap_or(i64::MAX);
                interval.saturating_mul(i64::from(shards.number())) / held.max(1)
            }
        };
        let now = now.as_millis().saturating_mul(1000);
        let burst = i64::try_from(BURST.as_micros()).unwrap_or(i64::MAX);
        let mut all = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        let due = match all.get_mut(namespace) {
            Some(due) => due,
            None => all.entry(namespace.to_owned()).or_insert(now),
        };
        let reserved = (*due).max(now);
        *due = reserved.saturating_add(interval);
        // Rounded up, so that it is never too early.
        let micros = reserved.saturating_sub(burst).saturating_add(interval);
        Timestamp::from_millis(micros.saturating_add(999) / 1000)
    }
}

/// The pace of one Configurator, by the current policies for its namespace.
pub(crate) struct NamespacePace {
    pub(crate) rates: RunRates,
    pub(crate) policies: Policies,
    pub(crate) namespace: String,
}

impl fmt::Debug for NamespacePace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut formatter = formatter.debug_struct("NamespacePace");
        formatter.field("namespace", &self.namespace);
        formatter.finish_non_exhaustive()
    }
}

impl Pace for NamespacePace {
    fn reserve(&self, now: Timestamp) -> Timestamp {
        let quotas = self.policies.of(&self.namespace).quotas;
        match quotas.runs_per_second {
            Some(per_second) => self.rates.reserve(&self.namespace, per_second, now),
            None => now,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn runs_begin_at_the_rate_after_a_burst() {
        let rates = RunRates::new(None);
        let now = millis(1_000_000);
        let reserved: Vec<_> = (0..100).map(|_| rates.reserve("team-a", 10, now)).collect();
        let at_once = reserved.iter().filter(|at| **at <= now).count();
        assert_eq!((at_once, reserved[99]), (10, millis(1_009_000)));
        // Another namespace does not wait for them.
        assert!(rates.reserve("team-b", 10, now) <= now);
        // What was not used in a pause is not saved up.
        let later = millis(2_000_000);
        let reserved = (0..100).map(|_| rates.reserve("team-a", 10, later));
        assert_eq!(reserved.filter(|at| *at <= later).count(), 10);
    }
}
