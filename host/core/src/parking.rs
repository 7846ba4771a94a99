//! Sinks that cannot be reached: their runs are parked, and someone looks now and then whether they are back.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::backoff::jittered;
use crate::request::SinkName;
use crate::time::Timestamp;

/// How long after it failed a sink is first probed, and between probes.
pub const PROBE_INTERVAL: Duration = Duration::from_secs(3);

/// The sinks that runs are parked for.
#[derive(Debug, Default)]
pub struct Parking {
    sinks: BTreeMap<SinkName, Timestamp>,
    seed: u64,
}

impl Parking {
    /// Nothing is parked. `seed` decides the jitter of probes.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            sinks: BTreeMap::new(),
            seed,
        }
    }

    /// A run was parked. Returns whether it is the first for this sink.
    pub fn park(&mut self, sink: SinkName, retry_after: Option<Duration>, now: Timestamp) -> bool {
        let wait = retry_after.unwrap_or_else(|| self.interval(now));
        let at = now.after(wait);
        match self.sinks.get_mut(&sink) {
            None => {
                self.sinks.insert(sink, at);
                true
            }
            Some(known) => {
                if retry_after.is_some() {
                    *known = at.max(*known);
                }
                false
            }
        }
    }

    /// When [`due`](Self::due) has something to say.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.sinks.values().min().copied()
    }

    /// The sinks to probe now.
    #[must_use]
    pub fn due(&self, now: Timestamp) -> Vec<SinkName> {
        self.sinks
            .iter()
            .filter(|(_, at)| **at <= now)
            .map(|(sink, _)| *sink)
            .collect()
    }

    /// What a probe came to: `Err` with how long the sink asks to be left alone. Returns whether its runs are to
    /// be released.
    pub fn probed(
        &mut self,
        sink: SinkName,
        answer: Result<(), Option<Duration>>,
        now: Timestamp,
    ) -> bool {
        match answer {
            Ok(()) => self.sinks.remove(&sink).is_some(),
            Err(retry_after) => {
                let wait = retry_after.unwrap_or_else(|| self.interval(now));
                self.sinks.insert(sink, now.after(wait));
                false
            }
        }
    }

    /// Whether runs are parked for this sink.
    #[must_use]
    pub fn is_parked(&self, sink: SinkName) -> bool {
        self.sinks.contains_key(&sink)
    }

    fn interval(&self, now: Timestamp) -> Duration {
        jittered(
            PROBE_INTERVAL,
            self.seed ^ u64::try_from(now.as_millis()).unwrap_or_default(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sink_is_probed_until_it_answers() {
        let mut parking = Parking::new(7);
        let start = Timestamp::from_millis(0);
        assert!(parking.park(SinkName::Configstore, None, start));
        assert!(!parking.park(SinkName::Configstore, None, start));
        assert!(parking.due(start).is_empty());
        let first = parking.next_deadline().unwrap();
        assert!(first > start && first <= start.after(PROBE_INTERVAL));
        assert_eq!(parking.due(first), [SinkName::Configstore]);
        assert!(!parking.probed(
            SinkName::Configstore,
            Err(Some(Duration::from_secs(60))),
            first
        ));
        assert_eq!(
            parking.next_deadline(),
            Some(first.after(Duration::from_secs(60)))
        );
        assert!(parking.probed(SinkName::Configstore, Ok(()), first));
        assert!(!parking.is_parked(SinkName::Configstore));
        assert_eq!(parking.next_deadline(), None);
    }

    #[test]
    fn the_longest_wish_to_be_left_alone_counts() {
        let mut parking = Parking::new(7);
        let now = Timestamp::from_millis(0);
        parking.park(SinkName::Http, Some(Duration::from_secs(10)), now);
        parking.park(SinkName::Http, Some(Duration::from_secs(5)), now);
        parking.park(SinkName::Http, None, now);
        assert_eq!(
            parking.next_deadline(),
            Some(now.after(Duration::from_secs(10)))
        );
    }
}
