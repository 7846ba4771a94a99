//! A new module that is tried on some objects before all have it.

use std::sync::Arc;

use configurator_core::time::Timestamp;
use configurator_core::trial::{Share, Tally, TrialRule};
use configurator_guest::module::Module;
use kube::ResourceExt as _;

use crate::resource::{CanaryStatus, Configurator, RolledBackStatus};

/// Names the digest that a person went back to: it takes over at once, whatever the rollout says.
pub const ROLLBACK_ANNOTATION: &str = "configurator.dev/rollback";

/// A trial under way.
pub struct Trial {
    /// The module that is tried.
    pub candidate: Arc<Module>,
    /// When it is good enough.
    pub rule: TrialRule,
    /// When it began.
    pub since: Timestamp,
}

/// How another module of this Configurator is tried; `None`: all objects have it at once.
#[must_use]
pub fn rule(resource: &Configurator) -> Option<TrialRule> {
    let module = &resource.spec.module;
    let canary = module.rollout.canary.as_ref()?;
    let back = resource.annotations().get(ROLLBACK_ANNOTATION);
    if back.is_some() && back == module.digest.as_ref() {
        return None;
    }
    Some(TrialRule {
        share: Share::new(canary.percent),
        duration: canary.duration.into(),
        min_runs: canary.min_runs,
        max_faults: canary.max_faults,
    })
}

impl Trial {
    /// As the status of the Configurator says it.
    #[must_use]
    pub fn status(&self, tally: Tally) -> CanaryStatus {
        CanaryStatus {
            digest: self.candidate.digest().to_string(),
            percent: self.rule.share.percent(),
            since: self.since.to_string(),
            runs: tally.runs,
            faults: tally.faults,
        }
    }

    /// What is said of it when it was not good enough.
    #[must_use]
    pub fn rolled_back(&self, tally: Tally) -> RolledBackStatus {
        let digest = self.candidate.digest().to_string();
        let Tally { runs, faults } = tally;
        let message = format!(
            "the module {digest} was tried on {} % of the objects, and {faults} of {runs} runs were faulty, where {} % may be: no object has it any more",
            self.rule.share.percent(),
            self.rule.max_faults
        );
        RolledBackStatus { digest, message }
    }
}
