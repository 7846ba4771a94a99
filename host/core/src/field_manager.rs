//! The field managers of Configurators: under which names the host writes on their behalf.
//!
//! The managers of a Configurator begin with `cfgr/NAMESPACE/NAME`, and those of a ClusterConfigurator with `ccfgr/NAME`. No two
//! Configurators share one: names contain no slash.

use sha2::{Digest as _, Sha256};

use crate::request::ObjectRef;

/// How the managers of Configurators begin.
const NAMESPACED: &str = "cfgr/";
/// How the managers of ClusterConfigurators begin.
const CLUSTER: &str = "ccfgr/";
/// What the longest suffix leaves of the 128 characters that Kubernetes allows.
const MAX_LENGTH: usize = 128 - RELEASED.len();
/// The characters of a name that is too long which remain before its digest.
const SHOWN: usize = 80;

const STATUS: &str = "/status";
const STATE: &str = "/state";
const SET: &str = "/set";
const MARK: &str = "/mark";
const RELEASED: &str = "/released";

/// The field manager of the requests of a Configurator. At most 128 bytes: a name that is too long is cut, and ends with its digest.
#[must_use]
pub fn of_requests(configurator: &ObjectRef) -> String {
    let kind = match configurator.namespace.as_str() {
        "" => CLUSTER,
        _ => NAMESPACED,
    };
    let manager = format!("{kind}{configurator}");
    if manager.len() <= MAX_LENGTH {
        return manager;
    }
    let digest = Sha256::digest(&manager);
    let digest: String = digest
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let shown: String = manager.chars().take(SHOWN).collect();
    // No name of a Kubernetes object contains the `~`.
    format!("{shown}~{digest}")
}

/// The field manager of the `statuses` of a Configurator.
#[must_use]
pub fn of_status(configurator: &ObjectRef) -> String {
    of_requests(configurator) + STATUS
}

/// The field manager of the states of the objects of a Configurator with a machine.
#[must_use]
pub fn of_states(configurator: &ObjectRef) -> String {
    of_requests(configurator) + STATE
}

/// The field manager of the members of the sets of a Configurator.
#[must_use]
pub fn of_sets(configurator: &ObjectRef) -> String {
    of_requests(configurator) + SET
}

/// The field manager of the mark on members that are about to be pruned.
#[must_use]
pub fn of_marks(configurator: &ObjectRef) -> String {
    of_requests(configurator) + MARK
}

/// The field manager of the fields of members that the sets of a Configurator have released.
#[must_use]
pub fn of_released(configurator: &ObjectRef) -> String {
    of_requests(configurator) + RELEASED
}

/// Whether `manager` writes on behalf of any Configurator.
#[must_use]
pub fn is_of_any(manager: &str) -> bool {
    manager.starts_with(NAMESPACED) || manager.starts_with(CLUSTER)
}

/// Whether `manager` is one of the Configurator whose requests have the manager `own`.
#[must_use]
pub fn is_of(own: &str, manager: &str) -> bool {
    manager
        .strip_prefix(own)
        .is_some_and(|rest| matches!(rest, "" | STATUS | STATE | SET | MARK | RELEASED))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(namespace: &str, name: &str) -> ObjectRef {
        ObjectRef {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    #[test]
    fn managers_tell_scopes_and_purposes_apart() {
        let (team, cluster) = (key("team-a", "status"), key("", "team-a"));
        assert_eq!(of_requests(&team), "cfgr/team-a/status");
        assert_eq!(of_status(&cluster), "ccfgr/team-a/status");
        for own in [&team, &cluster] {
            for manager in [
                of_requests(own),
                of_status(own),
                of_states(own),
                of_sets(own),
                of_marks(own),
                of_released(own),
            ] {
                assert!(is_of_any(&manager));
                for other in [&team, &cluster] {
                    assert_eq!(is_of(&of_requests(other), &manager), own == other);
                }
            }
        }
        assert!(!is_of_any("kubectl"));
    }

    #[test]
    fn long_names_are_cut_without_collisions() {
        let long = |last: &str| key(&"n".repeat(63), &("c".repeat(62) + last));
        let managers = [long("a"), long("b"), key("", &"c".repeat(253))].map(|key| of_status(&key));
        for manager in &managers {
            assert!(manager.len() <= 128, "{manager}");
        }
        assert_ne!(managers[0], managers[1]);
        let longest = key("", &"c".repeat(MAX_LENGTH - CLUSTER.len()));
        assert!(!of_requests(&longest).contains('~'));
        assert!(of_released(&longest).len() <= 128);
    }
}
