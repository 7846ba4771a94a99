//! The owners of calls.

use configurator_background::owners::Owner;
use configurator_core::handler::CallLimits;

/// Returns the owner of calls with these limits.
#[must_use]
pub const fn owner_of(limits: &CallLimits) -> Owner {
    Owner {
        id: limits.owner,
        group: limits.group,
        weight: limits.weight,
    }
}
