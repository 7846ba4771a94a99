//! The termination policy of a set, as its inventory has it.

use configurator_core::desired::Termination;
use configurator_core::graph::deletion::TerminationPolicy;
use configurator_core::projection::Projection;
use serde_json::Value;

/// The policy as the inventory has it.
pub(super) fn policy_text(termination: Option<&Termination>) -> String {
    match termination {
        None => policy_name(TerminationPolicy::default()).to_owned(),
        Some(Termination::Policy(policy)) => policy_name(*policy).to_owned(),
        // No policy begins like this.
        Some(Termination::Path(path)) => match path.starts_with(['$', '.', '[']) {
            true => path.clone(),
            false => format!(".{path}"),
        },
    }
}

const POLICIES: [TerminationPolicy; 4] = [
    TerminationPolicy::DoNotTerminate,
    TerminationPolicy::KeepVolumes,
    TerminationPolicy::Delete,
    TerminationPolicy::WipeOut,
];

const fn policy_name(policy: TerminationPolicy) -> &'static str {
    match policy {
        TerminationPolicy::DoNotTerminate => "DoNotTerminate",
        TerminationPolicy::KeepVolumes => "KeepVolumes",
        TerminationPolicy::Delete => "Delete",
        TerminationPolicy::WipeOut => "WipeOut",
    }
}

/// Returns the policy that counts: the one that is named, or the one that the owner has at the path. An owner that has nothing there has the
/// default. A word that names no policy counts as `DoNotTerminate`, so that a mistake deletes nothing.
pub(super) fn policy_of(text: &str, owner: &Value) -> TerminationPolicy {
    let named = |name: &str| {
        POLICIES
            .into_iter()
            .find(|policy| policy_name(*policy) == name)
    };
    if !text.starts_with(['$', '.', '[']) {
        return named(text).unwrap_or_default();
    }
    let found = Projection::parse(&[text]).ok();
    let found = found.and_then(|path| path.first(owner).and_then(Value::as_str).map(str::to_owned));
    match found {
        None => TerminationPolicy::default(),
        Some(name) => named(&name).unwrap_or(TerminationPolicy::DoNotTerminate),
    }
}
