//! Watches over the sinks that runs are parked for.

use std::sync::Arc;
use std::time::Duration;

use configurator_core::parking::Parking;
use configurator_core::request::SinkName;
use tokio::sync::{broadcast, mpsc};

use crate::clock::{SharedClock, until};
use crate::metrics::Metrics;
use crate::sinks::Sinks;
use crate::tasks::Tasks;

/// A run was parked.
#[derive(Debug, Clone, Copy)]
pub struct Parked {
    /// For this sink.
    pub sink: SinkName,
    /// How long the sink asked to be left alone.
    pub retry_after: Option<Duration>,
}

/// Probes the sinks that runs are parked for, and announces each that has come back.
pub struct ParkingAttendant {
    /// Probed.
    pub sinks: Sinks,
    /// The time.
    pub clock: SharedClock,
    /// Counts.
    pub metrics: Arc<Metrics>,
    /// Runs that were parked.
    pub parked: mpsc::Receiver<Parked>,
    /// Sinks that have come back.
    pub released: broadcast::Sender<SinkName>,
    /// Decides the jitter.
    pub seed: u64,
}

impl ParkingAttendant {
    /// Works until the host drains.
    pub async fn run(mut self, tasks: Tasks) {
        let mut parking = Parking::new(self.seed);
        loop {
            let now = self.clock.now();
            for sink in parking.due(now) {
                let answer = self.sinks.get(sink).probe().await;
                if let Err(fault) = &answer {
                    tracing::debug!(%sink, %fault, "the sink is still away");
                }
                let answer = answer.map_err(|fault| fault.retry_after);
                if parking.probed(sink, answer, self.clock.now()) {
                    tracing::info!(%sink, "the sink is back; its runs go on");
                    self.metrics.parked(sink, false);
                    // Without a receiver there is nobody to release.
                    let _ = self.released.send(sink);
                }
            }
            let probe = until(self.clock.clone(), parking.next_deadline());
            tokio::select! {
                biased;
                () = tasks.drain_token().cancelled() => return,
                parked = self.parked.recv() => {
                    let Some(Parked { sink, retry_after }) = parked else { return };
                    if parking.park(sink, retry_after, self.clock.now()) {
                        tracing::warn!(%sink, "the sink cannot be reached; its runs are parked");
                        self.metrics.parked(sink, true);
                    }
                }
                () = probe => {}
            }
        }
    }
}
