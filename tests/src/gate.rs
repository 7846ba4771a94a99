//! A sink in front of another, which a test can close.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use configurator_core::authorization::AuthorizedOperation;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::result::Answer;
use configurator_host::sinks::{Scope, Sink, Sinks};
use tokio::sync::watch;

/// What the gate does with operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    /// They go through.
    Open,
    /// They wait until this changes.
    Held,
    /// They fail as if nobody answered, and so do probes.
    Away,
}

/// A gate before the config store.
#[derive(Clone)]
pub struct Gate {
    pass: Arc<watch::Sender<Pass>>,
    arrived: Arc<watch::Sender<u64>>,
    refused: Arc<AtomicU64>,
}

impl Gate {
    /// A gate in this position.
    #[must_use]
    pub fn new(pass: Pass) -> Self {
        Self {
            pass: Arc::new(watch::Sender::new(pass)),
            arrived: Arc::new(watch::Sender::new(0)),
            refused: Arc::default(),
        }
    }

    /// Changes its position.
    pub fn set(&self, pass: Pass) {
        self.pass.send_replace(pass);
    }

    /// Returns when so many operations have come to the gate.
    pub async fn arrivals(&self, number: u64) {
        // The sender is held here.
        let _ = self
            .arrived
            .subscribe()
            .wait_for(|arrived| *arrived >= number)
            .await;
    }

    /// How many operations have come to the gate.
    #[must_use]
    pub fn arrived(&self) -> u64 {
        *self.arrived.borrow()
    }

    /// How many operations failed because nobody answered.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Puts the gate before the config store.
    #[must_use]
    pub fn before_configstore(&self, sinks: Sinks) -> Sinks {
        let gated = GatedSink {
            gate: self.clone(),
            inner: sinks.configstore.clone(),
        };
        Sinks {
            configstore: Arc::new(gated),
            ..sinks
        }
    }

    fn away() -> Fault {
        Fault::new(FaultKind::ConfigstoreUnavailable, "nobody answers")
    }
}

struct GatedSink {
    gate: Gate,
    inner: Arc<dyn Sink>,
}

#[async_trait]
impl Sink for GatedSink {
    async fn execute(
        &self,
        operation: &AuthorizedOperation,
        scope: &Scope,
    ) -> Result<Answer, Fault> {
        self.gate.arrived.send_modify(|arrived| *arrived += 1);
        let mut pass = self.gate.pass.subscribe();
        let is_open = match pass.wait_for(|pass| *pass != Pass::Held).await {
            Ok(pass) => *pass == Pass::Open,
            Err(_) => true,
        };
        if is_open {
            return self.inner.execute(operation, scope).await;
        }
        self.gate.refused.fetch_add(1, Ordering::Relaxed);
        Err(Gate::away())
    }

    async fn probe(&self) -> Result<(), Fault> {
        if *self.gate.pass.borrow() == Pass::Away {
            return Err(Gate::away());
        }
        self.inner.probe().await
    }
}
