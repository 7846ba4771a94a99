//! Numbers about a host, in the format of Prometheus.

mod budgets;
mod sets;

use std::time::Duration;

use configurator_background::work::Background;
use configurator_core::fault::FaultKind;
use configurator_core::machine::action::Notice;
use configurator_core::queue::Counts;
use configurator_core::request::{ObjectRef, SinkName};
use configurator_guest::runtime::GuestRuntime;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use self::budgets::Budgets;
use self::sets::SetFamilies;
pub(crate) use self::sets::{CountedIdle, MemberCounts, SetCounts, SetMetrics};
use crate::answers::AnswerBudget;

/// The metrics of one host. Every name begins with `configurator_`.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    runs: Family<RunLabels, Counter>,
    calls: Family<CallLabels, Counter>,
    call_cpu: Family<ConfiguratorLabels, Histogram, fn() -> Histogram>,
    requests: Family<RequestLabels, Counter>,
    objects: Family<StateLabels, Gauge>,
    parked: Family<SinkLabels, Gauge>,
    phases: Family<PhaseLabels, Counter>,
    flows: Family<FlowLabels, Counter>,
    steps: Family<RunLabels, Counter>,
    sets: SetFamilies,
    events_dropped: Counter,
    declarative_given_up: Counter,
    declarative_refused: Counter,
    log_lines_dropped: Counter,
    shards: Gauge,
    shards_lost: Counter,
    lease_rollbacks: Counter,
}

/// A Configurator, as two labels. The namespace of a ClusterConfigurator is empty.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ConfiguratorLabels {
    configurator_namespace: String,
    configurator: String,
}

impl From<&ObjectRef> for ConfiguratorLabels {
    fn from(configurator: &ObjectRef) -> Self {
        Self {
            configurator_namespace: configurator.namespace.clone(),
            configurator: configurator.name.clone(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RunLabels {
    #[prometheus(flatten)]
    configurator: ConfiguratorLabels,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    #[prometheus(flatten)]
    configurator: ConfiguratorLabels,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    sink: &'static str,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabels {
    #[prometheus(flatten)]
    configurator: ConfiguratorLabels,
    state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PhaseLabels {
    #[prometheus(flatten)]
    configurator: ConfiguratorLabels,
    phase: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FlowLabels {
    #[prometheus(flatten)]
    configurator: ConfiguratorLabels,
    flow: String,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SinkLabels {
    sink: &'static str,
}

impl Metrics {
    /// The metrics of a host with these budgets.
    #[must_use]
    pub fn new(guest: GuestRuntime, answers: AnswerBudget, background: Background) -> Self {
        let mut registry = Registry::with_prefix("configurator");
        let call_buckets: fn() -> Histogram =
            || Histogram::new(exponential_buckets(10e-6, 2.5, 14));
        let metrics = Self {
            runs: Family::default(),
            calls: Family::default(),
            call_cpu: Family::new_with_constructor(call_buckets),
            requests: Family::default(),
            objects: Family::default(),
            parked: Family::default(),
            phases: Family::default(),
            flows: Family::default(),
            steps: Family::default(),
            sets: SetFamilies::default(),
            events_dropped: Counter::default(),
            declarative_given_up: Counter::default(),
            declarative_refused: Counter::default(),
            log_lines_dropped: Counter::default(),
            shards: Gauge::default(),
            shards_lost: Counter::default(),
            lease_rollbacks: Counter::default(),
            registry: Registry::default(),
        };
        registry.register(
            "runs",
            "Runs that ended or rest, by how",
            metrics.runs.clone(),
        );
        registry.register(
            "calls",
            "Calls of handlers, by how they ended",
            metrics.calls.clone(),
        );
        registry.register(
            "call_cpu_seconds",
            "CPU time of a call",
            metrics.call_cpu.clone(),
        );
        registry.register(
            "requests",
            "Requests, by sink and outcome",
            metrics.requests.clone(),
        );
        registry.register(
            "objects",
            "Watched objects, by state",
            metrics.objects.clone(),
        );
        registry.register(
            "sink_parked",
            "Whether a server of a sink is unavailable",
            metrics.parked.clone(),
        );
        registry.register(
            "phases_entered",
            "Phases that objects have entered",
            metrics.phases.clone(),
        );
        registry.register(
            "flows",
            "Flows, by what became of them",
            metrics.flows.clone(),
        );
        registry.register(
            "steps",
            "Leaves of phases, by how their turns ended",
            metrics.steps.clone(),
        );
        registry.register(
            "events_dropped",
            "Events that found no place in the queue",
            metrics.events_dropped.clone(),
        );
        registry.register(
            "declarative_given_up",
            "Declarative requests that failed for good",
            metrics.declarative_given_up.clone(),
        );
        registry.register(
            "declarative_refused",
            "Declarative requests that found no place",
            metrics.declarative_refused.clone(),
        );
        registry.register(
            "guest_log_lines_dropped",
            "Log lines of handlers past their limit",
            metrics.log_lines_dropped.clone(),
        );
        registry.register(
            "shards",
            "Shards that are this host's, where hosts share the objects",
            metrics.shards.clone(),
        );
        registry.register(
            "shards_lost",
            "Shards that were lost instead of given back",
            metrics.shards_lost.clone(),
        );
        registry.register(
            "lease_rollbacks",
            "Leases that were found in an older state than they had been",
            metrics.lease_rollbacks.clone(),
        );
        metrics.sets.register(&mut registry);
        registry.register_collector(Box::new(Budgets {
            guest,
            answers,
            background,
        }));
        Self {
            registry,
            ..metrics
        }
    }

    /// The text that Prometheus reads.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = text::encode(&mut text, &self.registry);
        text
    }

    pub(crate) fn run(&self, configurator: &ObjectRef, outcome: &'static str) {
        self.runs
            .get_or_create(&RunLabels {
                configurator: configurator.into(),
                outcome,
            })
            .inc();
    }

    pub(crate) fn call(
        &self,
        configurator: &ObjectRef,
        outcome: &'static str,
        cpu: Duration,
        lines_dropped: u64,
    ) {
        self.calls
            .get_or_create(&CallLabels {
                configurator: configurator.into(),
                outcome,
            })
            .inc();
        self.call_cpu
            .get_or_create(&configurator.into())
            .observe(cpu.as_secs_f64());
        self.log_lines_dropped.inc_by(lines_dropped);
    }

    /// What a machine has told.
    pub(crate) fn told(&self, configurator: &ObjectRef, notice: &Notice) {
        let configurator = ConfiguratorLabels::from(configurator);
        let (flow, outcome) = match notice {
            Notice::PhaseEntered { to, .. } => {
                let phase = to.clone();
                let labels = PhaseLabels {
                    configurator,
                    phase,
                };
                self.phases.get_or_create(&labels).inc();
                return;
            }
            Notice::FlowStarted { flow } => (Some(flow), "started"),
            Notice::FlowCompleted { flow } => (Some(flow), "completed"),
            Notice::FlowFailed { flow, .. } => (Some(flow), "failed"),
            Notice::FlowResumed { flow, .. } => (Some(flow), "resumed"),
            Notice::FlowRefused { flow, .. } => (Some(flow), "refused"),
            Notice::StepEnded { error: None, .. } => (None, "done"),
            Notice::StepEnded { error: Some(_), .. } => (None, "failed"),
            Notice::StepFailed { .. } => (None, "retried"),
            Notice::OutcomeUnknown { .. } => (None, "unknown"),
            Notice::StepStarted { .. }
            | Notice::ActionNeeded { .. }
            | Notice::CommandDone { .. }
            | Notice::CommandRefused { .. }
            | Notice::UnknownPhase { .. }
            | Notice::PhasesInCircle { .. } => return,
        };
        let counter = match flow.cloned() {
            Some(flow) => self.flows.get_or_create_owned(&FlowLabels {
                configurator,
                flow,
                outcome,
            }),
            None => self.steps.get_or_create_owned(&RunLabels {
                configurator,
                outcome,
            }),
        };
        counter.inc();
    }

    pub(crate) fn request(&self, sink: SinkName, fault: Option<FaultKind>) {
        let outcome = fault.map_or("ok", FaultKind::name);
        self.requests
            .get_or_create(&RequestLabels {
                sink: sink.name(),
                outcome,
            })
            .inc();
    }

    pub(crate) fn counts(&self, configurator: &ObjectRef, counts: Counts) {
        let states = [
            ("existing", counts.objects),
            ("queued", counts.queued),
            ("running", counts.running),
            ("waiting", counts.waiting),
            ("failed", counts.failed),
            ("delayed", counts.delayed),
        ];
        for (state, number) in states {
            let labels = StateLabels {
                configurator: configurator.into(),
                state,
            };
            self.objects
                .get_or_create(&labels)
                .set(i64::try_from(number).unwrap_or(i64::MAX));
        }
    }

    /// The metrics of the sets of a Configurator.
    pub(crate) fn sets_of(&self, configurator: &ObjectRef) -> SetMetrics {
        self.sets.of(configurator)
    }

    pub(crate) fn parked(&self, sink: SinkName, is_parked: bool) {
        self.parked
            .get_or_create(&SinkLabels { sink: sink.name() })
            .set(i64::from(is_parked));
    }

    pub(crate) fn shards(&self, number: usize) {
        self.shards.set(i64::try_from(number).unwrap_or(i64::MAX));
    }

    pub(crate) fn shard_lost(&self) {
        self.shards_lost.inc();
    }

    pub(crate) fn lease_rolled_back(&self) {
        self.lease_rollbacks.inc();
    }

    pub(crate) fn event_dropped(&self) {
        self.events_dropped.inc();
    }

    pub(crate) fn declarative_given_up(&self) {
        self.declarative_given_up.inc();
    }

    pub(crate) fn declarative_refused(&self) {
        self.declarative_refused.inc();
    }
}
