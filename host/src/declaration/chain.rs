//! From a list of phases to a checked chain.

use configurator_core::configurator::{BatchOptions, Phase};

use super::{DeclarationError, check_name, count, span, wrong};
use crate::resource::{BatchSpec, ChainPhaseSpec};

/// Checks `spec.chain.phases`.
pub(super) fn root_chain(specs: &[ChainPhaseSpec]) -> Result<Vec<Phase>, DeclarationError> {
    if specs.is_empty() {
        return Err(wrong(
            "spec.chain.phases",
            "a chain needs at least one phase, the root phase",
        ));
    }
    phases("spec.chain.phases", specs)
}

/// Checks phases: each has a name of its own, and the handler that is declared, or the one of the same name.
pub(super) fn phases(path: &str, specs: &[ChainPhaseSpec]) -> Result<Vec<Phase>, DeclarationError> {
    let mut phases: Vec<Phase> = Vec::with_capacity(specs.len());
    for (index, ChainPhaseSpec { name, handler }) in specs.iter().enumerate() {
        let earlier = phases.iter().map(|phase| phase.name.as_str());
        check_name(&format!("{path}[{index}].name"), name, earlier)?;
        phases.push(Phase {
            name: name.clone(),
            handler: handler.as_ref().unwrap_or(name).clone(),
        });
    }
    Ok(phases)
}

/// Checks `spec.chain.batch`.
pub(super) fn batch(spec: &BatchSpec) -> Result<BatchOptions, DeclarationError> {
    Ok(BatchOptions {
        max_size: count("spec.chain.batch.maxSize", spec.max_size)?,
        max_delay: span("spec.chain.batch.maxDelay", spec.max_delay)?,
    })
}
