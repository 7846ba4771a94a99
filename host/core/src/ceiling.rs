//! What others than the author of a Configurator allow at most.

use std::sync::Arc;

use crate::capability::Capabilities;
use crate::fault::{Fault, FaultKind};

/// Rules that all must allow a request, in addition to those of the Configurator: the policy of the host, and policies for the namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ceiling {
    layers: Vec<Layer>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Layer {
    /// Whose rules they are, as in `the policy of this host`.
    whose: String,
    rules: Arc<Capabilities>,
}

impl Ceiling {
    /// The policy of a host.
    #[must_use]
    pub fn of_host(rules: Arc<Capabilities>) -> Self {
        let whose = "the policy of this host".to_owned();
        Self {
            layers: vec![Layer { whose, rules }],
        }
    }

    /// Allows everything, as a host without a policy does.
    #[must_use]
    pub fn unlimited() -> Self {
        Self::of_host(Arc::new(Capabilities::everything()))
    }

    /// Lowered by these rules. `whose` says whose they are.
    #[must_use]
    pub fn lowered(mut self, whose: &str, rules: Arc<Capabilities>) -> Self {
        let whose = whose.to_owned();
        self.layers.push(Layer { whose, rules });
        self
    }

    /// Checks that all rules allow something. The message of a fault says whose do not.
    ///
    /// # Errors
    /// As `check` has them.
    pub fn check(&self, check: impl Fn(&Capabilities) -> Result<(), Fault>) -> Result<(), Fault> {
        let mut layers = self.layers.iter();
        layers.try_for_each(|layer| check(&layer.rules).map_err(|fault| of(&layer.whose, fault)))
    }

    /// A rule that `wanted` has and one of these does not allow, and whose it is; `None` if all of `wanted` is allowed.
    #[must_use]
    pub fn lacking(&self, wanted: &Capabilities) -> Option<(String, &str)> {
        self.layers.iter().find_map(|layer| {
            let rule = layer.rules.lacking(wanted)?;
            Some((rule, layer.whose.as_str()))
        })
    }
}

/// The fault, with whose rules lack one.
pub(crate) fn of(whose: &str, fault: Fault) -> Fault {
    let message = match fault.kind {
        FaultKind::ResourcePermission => format!("{whose} has {}", fault.message),
        _ => fault.message,
    };
    Fault { message, ..fault }
}
