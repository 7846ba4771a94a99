//! The condition for an object to be ready, compiled.

use configurator_core::graph::health::{health, observed};
use configurator_core::graph::observation::Health;
use configurator_core::request::Readiness;
use configurator_schema::cel::Condition;
use serde_json::Value;

/// The condition for an object to be ready.
pub(crate) enum ReadyWhen {
    Exists,
    Observed,
    Healthy,
    Expression(String, Box<Condition>),
}

impl ReadyWhen {
    /// Compiles a condition.
    ///
    /// # Errors
    /// When an expression does not compile.
    pub(crate) fn new(readiness: &Readiness) -> Result<Self, String> {
        Ok(match readiness {
            Readiness::Healthy => Self::Healthy,
            Readiness::Exists => Self::Exists,
            Readiness::Observed => Self::Observed,
            Readiness::Expression(source) => {
                let condition =
                    Condition::compile(source).map_err(|error| format!("`ready-when`: {error}"))?;
                Self::Expression(source.clone(), Box::new(condition))
            }
        })
    }

    /// Whether an object is ready. `is_status_older` says that its status is from before its last write.
    pub(crate) fn health(&self, object: &Value, is_status_older: bool) -> Health {
        match self {
            Self::Exists => Health::Ready,
            Self::Observed => observed(object),
            Self::Healthy => health(object, is_status_older),
            Self::Expression(source, condition) => match observed(object) {
                Health::Ready => match condition.holds(object) {
                    Ok(true) => Health::Ready,
                    Ok(false) => Health::Waiting(format!("{source} is false")),
                    // What an expression is about may not be there yet.
                    Err(error) => Health::Waiting(format!("{source}: {error}")),
                },
                waiting => waiting,
            },
        }
    }
}
