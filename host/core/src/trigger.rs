//! The trigger of a run.

use crate::digest::digest_of;
use crate::run::{Chain, Member, Run};
use crate::time::Timestamp;

/// The trigger of a run for one of its objects. A run that is repeated after a failure, a restart of the host or a hand-over has
/// the same trigger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trigger {
    /// Distinguishes runs of one object that may be under way at the same time: by chain, or by the node of a leaf. It is a valid
    /// segment of a key.
    pub scope: String,
    /// For a chain, a digest of the object's content, the parameters and the module. The deletion chain leaves the content out, since
    /// an object is deleted once. For a leaf, a digest of the visit to its phase and the entry.
    pub digest: String,
    /// When the last scheduled resync of the object was due, or when it appeared. `None`: this host has seen neither, so nothing follows
    /// from it.
    pub occasion: Option<Timestamp>,
}

impl Trigger {
    /// Returns the trigger of `run` for one of its members. `module` is the digest of the run's module.
    #[must_use]
    pub fn of(run: &Run, member: &Member, module: &[u8]) -> Self {
        if run.is_of_leaf() {
            let entry = run.entry_id();
            let number = entry.number.to_string();
            let path = digest_of([run.visited_phase(), entry.phase].map(str::as_bytes));
            return Self {
                scope: format!("leaf-{path}"),
                digest: digest_of([entry.run, &number].map(str::as_bytes)),
                occasion: None,
            };
        }
        let (chain, content) = match run.chain() {
            Chain::Phases => ("phases", member.content.bytes()),
            Chain::Deletion => ("deletion", [0; 16]),
        };
        let parameters = run.configurator().parameters.as_str();
        Self {
            scope: chain.to_owned(),
            digest: digest_of([&content, parameters.as_bytes(), module]),
            occasion: member.occasion,
        }
    }

    /// Returns whether this is still the known trigger with this `digest` and `occasion`: nothing has happened since.
    #[must_use]
    pub fn is_same(&self, digest: &str, occasion: Option<Timestamp>) -> bool {
        self.digest == digest && (self.occasion.is_none() || self.occasion == occasion)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::ceiling::Ceiling;
    use crate::fixtures::{at, configurator, content, document, member};
    use crate::module::RunModule;
    use crate::retry::Tries;
    use crate::run::RunStart;

    fn trigger(change: impl FnOnce(&mut RunStart), module: &[u8]) -> Trigger {
        let mut start = RunStart {
            configurator: Arc::new(configurator()),
            ceiling: Arc::new(Ceiling::unlimited()),
            members: vec![member("web")],
            chain: Chain::Phases,
            tries: Tries::default(),
            module: RunModule::default(),
        };
        change(&mut start);
        let member = start.members[0].clone();
        let (run, _) = Run::start(start, at(0));
        Trigger::of(&run, &member, module)
    }

    #[test]
    fn a_trigger_changes_with_what_has_happened_and_not_with_a_restart() {
        let first = trigger(|_| (), b"module");
        let is_same = |other: &Trigger| other.is_same(&first.digest, first.occasion);
        assert!(is_same(&trigger(|_| (), b"module")));
        assert!(!is_same(&trigger(|_| (), b"another module")));
        let changed = |start: &mut RunStart| start.members[0].content = content(1);
        assert!(!is_same(&trigger(changed, b"module")));
        let parametrized = |start: &mut RunStart| {
            Arc::make_mut(&mut start.configurator).parameters = document(r#"{"to":2}"#);
        };
        assert!(!is_same(&trigger(parametrized, b"module")));
    }

    #[test]
    fn a_resync_changes_it_once() {
        let resynced = |due| trigger(|start| start.members[0].occasion = due, b"module");
        let [first, second, next] = [None, Some(at(1)), Some(at(2))].map(resynced);
        assert!(!second.is_same(&first.digest, first.occasion));
        assert!(second.is_same(&second.digest, second.occasion));
        assert!(!next.is_same(&second.digest, second.occasion));
        // A host that has just started does not know of the resync, whose effects may be under way.
        assert!(first.is_same(&second.digest, second.occasion));
    }

    #[test]
    fn a_deletion_is_the_same_whatever_the_object_contained() {
        let deleted = |number| {
            let change = |start: &mut RunStart| {
                start.chain = Chain::Deletion;
                start.members[0].content = content(number);
            };
            trigger(change, b"module")
        };
        assert_eq!(deleted(1), deleted(2));
    }
}
