//! What a host says of itself, and of each Configurator.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

/// What a host says of itself.
///
/// That something runs is said before anything comes of it: whoever sees an effect of a run does not find the report
/// settled until that run has ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostReport {
    /// Whether the Configurators are known.
    pub is_listed: bool,
    /// The reports on the Configurators: `NAMESPACE/NAME`, or `NAME` of a ClusterConfigurator.
    pub keepers: BTreeMap<String, KeeperReport>,
    /// The Configurators that the host does not run because of its scope, named in the same way.
    pub outside: BTreeSet<String>,
    /// Why the Configurators cannot be watched at the moment.
    pub watch_error: Option<String>,
}

/// What a keeper says of itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeeperReport {
    /// Whether every object that existed at start has settled, or the Configurator cannot run.
    pub is_bootstrapped: bool,
    /// Whether nothing runs, is queued or waits to be tried again.
    pub is_settled: bool,
    /// Whether runs wait for objects that have been read in vain for a while: see [`LONGEST_WAIT`](configurator_core::run::LONGEST_WAIT).
    pub reads_in_vain: bool,
}

impl HostReport {
    /// Whether every Configurator has settled every object that existed at start.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.is_listed && self.keepers.values().all(|keeper| keeper.is_bootstrapped)
    }

    /// Whether nothing runs, is queued or waits to be tried again. A run that waits for objects of others, and has read them in vain for a
    /// while, is not counted.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.is_listed && self.keepers.values().all(|keeper| keeper.is_settled)
    }

    /// Whether runs wait for objects that have been read in vain for a while.
    #[must_use]
    pub fn reads_in_vain(&self) -> bool {
        self.keepers.values().any(|keeper| keeper.reads_in_vain)
    }
}

/// Has the part of one keeper, until it retires.
#[derive(Debug, Clone)]
pub struct Reporter {
    reports: watch::Sender<HostReport>,
    name: Arc<str>,
    is_retired: Arc<AtomicBool>,
}

impl Reporter {
    /// From now on the Configurator is in the report, as one that has not begun.
    #[must_use]
    pub fn new(reports: watch::Sender<HostReport>, name: &str) -> Self {
        let reporter = Self {
            reports,
            name: name.into(),
            is_retired: Arc::default(),
        };
        reporter.say(KeeperReport::default());
        reporter
    }

    /// Takes the place of what was said before.
    pub fn say(&self, report: KeeperReport) {
        self.reports.send_if_modified(|known| {
            !self.is_retired.load(Ordering::Relaxed)
                && known.keepers.insert(self.name.to_string(), report) != Some(report)
        });
    }

    /// The Configurator is in the report no longer, whatever any clone still says.
    pub fn retire(&self) {
        self.reports.send_if_modified(|known| {
            let was_retired = self.is_retired.swap(true, Ordering::Relaxed);
            !was_retired && known.keepers.remove(&*self.name).is_some()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTLED: KeeperReport = KeeperReport {
        is_bootstrapped: true,
        is_settled: true,
        reads_in_vain: false,
    };

    #[test]
    fn a_keeper_that_ends_says_nothing_of_the_next_one() {
        let (reports, report) = watch::channel(HostReport::default());
        let first = Reporter::new(reports.clone(), "a");
        let clone = first.clone();
        clone.say(SETTLED);
        assert_eq!(report.borrow().keepers["a"], SETTLED);
        first.retire();
        assert!(report.borrow().keepers.is_empty());
        let second = Reporter::new(reports, "a");
        clone.say(SETTLED);
        clone.retire();
        assert_eq!(report.borrow().keepers["a"], KeeperReport::default());
        second.retire();
        assert!(report.borrow().keepers.is_empty());
    }
}
