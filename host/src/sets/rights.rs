//! Whether the Configurator may do everything that a set needs, before anything is written.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use configurator_core::fault::{Fault, FaultKind};
use configurator_core::graph::member::MemberKey;
use configurator_core::request::ObjectKey;
use configurator_core::run::Run;

use super::kinds::ServedKind;
use super::live::Wanted;
use super::requests::MemberRequests;

/// The kinds of a namespace, and the verbs that no rule grants.
type Lacking = BTreeMap<(String, String, String), BTreeSet<&'static str>>;

/// Checks that rules grant everything that the entries need: to read, watch, apply and delete them.
///
/// # Errors
/// [`FaultKind::ResourcePermission`] with the rules that are missing. What is wrong with an entry that cannot be sent whatever the rules say.
pub(super) fn check(run: &Run, wanted: &Wanted) -> Result<(), Fault> {
    let requests = MemberRequests { run };
    let mut lacking = Lacking::new();
    let mut reason = None;
    for (index, (key, kind)) in wanted.kinds().enumerate() {
        let Some((entry, _)) = wanted.entry(index) else {
            continue;
        };
        let asked = [
            (
                "apply",
                requests.apply_unmarked((key, kind), entry).map(drop),
            ),
            (
                "delete",
                requests.delete((key, kind), "uid", None).map(drop),
            ),
            ("get", requests.get(key, kind).map(drop)),
            ("watch", run.check_watch(&object_key(key, kind))),
        ];
        for (verb, asked) in asked {
            let Err(fault) = asked else { continue };
            if fault.kind != FaultKind::ResourcePermission {
                return Err(Fault {
                    message: format!("entry {:?}: {}", entry.name, fault.message),
                    ..fault
                });
            }
            let at = (kind.group.clone(), kind.plural.clone(), namespace_of(key));
            lacking.entry(at).or_default().insert(verb);
            reason.get_or_insert_with(|| format!("entry {:?}: {}", entry.name, fault.message));
        }
    }
    match reason {
        None => Ok(()),
        Some(reason) => Err(Fault::new(
            FaultKind::ResourcePermission,
            format!(
                "nothing of the set was written, because rules are missing: {reason}. The set needs:\n{}",
                rules(&lacking)
            ),
        )),
    }
}

fn namespace_of(key: &MemberKey) -> String {
    match key {
        MemberKey::Kubernetes { namespace, .. } => namespace.clone(),
        MemberKey::Config { .. } | MemberKey::Secret { .. } => String::new(),
    }
}

fn object_key(key: &MemberKey, kind: &ServedKind) -> ObjectKey {
    let name = match key {
        MemberKey::Kubernetes { name, .. } | MemberKey::Secret { name, .. } => name.clone(),
        MemberKey::Config { key, .. } => key.clone(),
    };
    ObjectKey {
        group: kind.group.clone(),
        version: kind.version.clone(),
        plural: kind.plural.clone(),
        namespace: namespace_of(key),
        name,
    }
}

/// The rules as `spec.capabilities` has them.
fn rules(lacking: &Lacking) -> String {
    let mut text = String::from("kubernetes:");
    for ((group, plural, namespace), lacking) in lacking {
        let verbs = lacking.iter().copied().collect::<Vec<_>>().join(", ");
        let _ = write!(
            text,
            "\n- {{apiGroups: [{group:?}], resources: [{plural:?}], verbs: [{verbs}]"
        );
        if !namespace.is_empty() {
            let _ = write!(text, ", namespaces: [{namespace:?}]");
        }
        text.push('}');
    }
    text
}
