//! Limits that operators and administrators set for Configurators.

use std::sync::Arc;

use crate::capability::Capabilities;
use crate::fault::{Fault, FaultKind};

/// The policy of the host, and the policies for a namespace. All of them must allow a request, in addition to the rules of the Configurator.
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
    /// Creates a ceiling from the policy of a host.
    #[must_use]
    pub fn of_host(rules: Arc<Capabilities>) -> Self {
        let whose = "the policy of this host".to_owned();
        Self {
            layers: vec![Layer { whose, rules }],
        }
    }

    /// Creates a ceiling that allows everything, for a host without a policy.
    #[must_use]
    pub fn unlimited() -> Self {
        Self::of_host(Arc::new(Capabilities::everything()))
    }

    /// Lowers the ceiling by these rules. `whose` names them in messages.
    #[must_use]
    pub fn lowered(mut self, whose: &str, rules: Arc<Capabilities>) -> Self {
        let whose = whose.to_owned();
        self.layers.push(Layer { whose, rules });
        self
    }

    /// Runs a check against all rules. The message of a fault names the rules that deny.
    ///
    /// # Errors
    /// As `check` has them.
    pub fn check(&self, check: impl Fn(&Capabilities) -> Result<(), Fault>) -> Result<(), Fault> {
        let mut layers = self.layers.iter();
        layers.try_for_each(|layer| check(&layer.rules).map_err(|fault| of(&layer.whose, fault)))
    }

    /// Returns a rule of `wanted` that is not allowed, and the name of the rules that deny it. `None` if everything is allowed.
    #[must_use]
    pub fn lacking(&self, wanted: &Capabilities) -> Option<(String, &str)> {
        self.layers.iter().find_map(|layer| {
            let rule = layer.rules.lacking(wanted)?;
            Some((rule, layer.whose.as_str()))
        })
    }
}

/// Adds the name of the rules that deny to the message of a fault.
pub(crate) fn of(whose: &str, fault: Fault) -> Fault {
    let message = match fault.kind {
        FaultKind::ResourcePermission => format!("{whose} has {}", fault.message),
        _ => fault.message,
    };
    Fault { message, ..fault }
}
