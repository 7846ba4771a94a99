//! Metrics of the budgets of a host, read at each scrape.

use std::fmt;

use configurator_background::work::Background;
use configurator_guest::runtime::GuestRuntime;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::gauge::ConstGauge;

use crate::answers::AnswerBudget;

/// The budgets that runs share.
pub(super) struct Budgets {
    pub(super) guest: GuestRuntime,
    pub(super) answers: AnswerBudget,
    pub(super) background: Background,
}

impl Collector for Budgets {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let memory = self.guest.memory();
        let waiting = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let gauges = [
            (
                "guest_memory_bytes",
                "Memory that handlers hold.",
                memory.reserved(),
            ),
            (
                "guest_memory_limit_bytes",
                "Memory that handlers may hold.",
                memory.limit(),
            ),
            (
                "guest_memory_waiting",
                "Calls that wait for memory.",
                waiting(memory.waiting()),
            ),
            (
                "answer_memory_bytes",
                "Memory of answers to runs, without the reserve.",
                self.answers.held(),
            ),
            (
                "answer_memory_limit_bytes",
                "Memory that answers may take, with the reserve.",
                self.answers.limit(),
            ),
            (
                "background_waiting",
                "Jobs that wait for a turn in the background.",
                waiting(self.background.waiting()),
            ),
            (
                "long_calls_waiting",
                "Calls that wait for a long turn.",
                waiting(self.guest.waiting_long_calls()),
            ),
            (
                "compilations_waiting",
                "Modules that wait to be compiled.",
                waiting(self.guest.waiting_compilations()),
            ),
        ];
        for (name, help, number) in gauges {
            let gauge = ConstGauge::new(number);
            let metric = encoder.encode_descriptor(name, help, None, gauge.metric_type())?;
            gauge.encode(metric)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Budgets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budgets").finish_non_exhaustive()
    }
}
