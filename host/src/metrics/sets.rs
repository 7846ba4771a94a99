//! Metrics of desired sets.

use configurator_core::request::ObjectRef;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::ConfiguratorLabels;

/// The metrics of all sets of a host.
#[derive(Debug, Clone, Default)]
pub(super) struct SetFamilies {
    sets: Family<SetLabels, Gauge>,
    members: Family<MemberLabels, Gauge>,
    idle: Family<ConfiguratorLabels, Gauge>,
    repairs: Family<ConfiguratorLabels, Counter>,
    fights: Family<ConfiguratorLabels, Counter>,
    prunes_refused: Family<ConfiguratorLabels, Counter>,
}

/// The metrics of the sets of one Configurator.
#[derive(Debug)]
pub(crate) struct SetMetrics {
    families: SetFamilies,
    configurator: ConfiguratorLabels,
}

/// Counts an idle set until it is dropped.
#[derive(Debug)]
pub(crate) struct CountedIdle(Gauge);

impl Drop for CountedIdle {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// The numbers of one set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SetCounts {
    /// As in the status of the ObjectSet.
    pub(crate) state: String,
    pub(crate) members: MemberCounts,
}

/// The members of a set, by state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct MemberCounts {
    pub(crate) ready: u32,
    /// Those that are written, read, or not ready yet.
    pub(crate) waiting: u32,
    /// Those that wait for others.
    pub(crate) blocked: u32,
    pub(crate) failed: u32,
    /// Those that have no entry any more, or no owner.
    pub(crate) deleting: u32,
}

impl MemberCounts {
    const fn by_state(self) -> [(&'static str, u32); 5] {
        [
            ("ready", self.ready),
            ("waiting", self.waiting),
            ("blocked", self.blocked),
            ("failed", self.failed),
            ("deleting", self.deleting),
        ]
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SetLabels {
    #[prometheus(flatten)]
    configurator: ConfiguratorLabels,
    state: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct MemberLabels {
    #[prometheus(flatten)]
    configurator: ConfiguratorLabels,
    state: &'static str,
}

impl SetFamilies {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("sets", "Desired sets, by state", self.sets.clone());
        registry.register(
            "set_members",
            "Members of desired sets, by state",
            self.members.clone(),
        );
        registry.register(
            "idle_sets",
            "Desired sets of which only a summary is in memory",
            self.idle.clone(),
        );
        registry.register(
            "set_repairs",
            "Members that others had changed, and that were corrected",
            self.repairs.clone(),
        );
        registry.register(
            "set_fights",
            "Members that others changed again and again, and whose corrections were spaced out",
            self.fights.clone(),
        );
        registry.register(
            "set_prunes_refused",
            "Changes of sets that would have deleted too many members",
            self.prunes_refused.clone(),
        );
    }

    pub(super) fn of(&self, configurator: &ObjectRef) -> SetMetrics {
        SetMetrics {
            families: self.clone(),
            configurator: configurator.into(),
        }
    }
}

impl SetMetrics {
    /// Replaces the numbers of a set in the metrics.
    pub(crate) fn count(&self, before: Option<&SetCounts>, after: Option<&SetCounts>) {
        for (counts, sign) in [(before, -1), (after, 1)] {
            let Some(counts) = counts else { continue };
            let labels = SetLabels {
                configurator: self.configurator.clone(),
                state: counts.state.clone(),
            };
            self.families.sets.get_or_create(&labels).inc_by(sign);
            for (state, number) in counts.members.by_state() {
                let labels = MemberLabels {
                    configurator: self.configurator.clone(),
                    state,
                };
                let members = self.families.members.get_or_create(&labels);
                members.inc_by(sign * i64::from(number));
            }
        }
    }

    /// Counts a set of which only a summary is in memory.
    pub(crate) fn idle(&self) -> CountedIdle {
        let idle = self.families.idle.get_or_create_owned(&self.configurator);
        idle.inc();
        CountedIdle(idle)
    }

    /// Counts a change that would have deleted too many members.
    pub(crate) fn prune_refused(&self) {
        let refused = self
            .families
            .prunes_refused
            .get_or_create(&self.configurator);
        refused.inc();
    }

    /// Counts a member that others had changed and that the host corrected.
    pub(crate) fn repaired(&self) {
        let repairs = self.families.repairs.get_or_create(&self.configurator);
        repairs.inc();
    }

    /// Counts a member that others change again and again.
    pub(crate) fn fight_began(&self) {
        let fights = self.families.fights.get_or_create(&self.configurator);
        fights.inc();
    }
}
