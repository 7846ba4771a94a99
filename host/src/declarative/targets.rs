//! The targets of declarative requests under way.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::Notify;

use super::{DeclarativeJob, MAX_TARGETS, MAX_TARGETS_OF_NAMESPACE};

/// What one request under way changes.
#[derive(Default)]
pub(super) struct Target {
    /// The namespace of the Configurator. Empty for a ClusterConfigurator.
    pub(super) namespace: String,
    /// What is to be sent after the attempt that is under way.
    pub(super) next: Option<DeclarativeJob>,
    pub(super) owner: Option<String>,
    pub(super) is_cancelled: bool,
    pub(super) changed: Arc<Notify>,
}

/// The targets by their names, limited in number.
#[derive(Default)]
pub(super) struct Targets {
    by_name: HashMap<String, Target>,
    /// The number of targets for each namespace.
    by_namespace: HashMap<String, usize>,
}

impl Targets {
    /// Adds a new target.
    ///
    /// # Errors
    /// With the limit, if there are too many.
    pub(super) fn insert(&mut self, name: String, target: Target) -> Result<(), usize> {
        if self.by_name.len() >= MAX_TARGETS {
            return Err(MAX_TARGETS);
        }
        if !target.namespace.is_empty() {
            let number = self.by_namespace.entry(target.namespace.clone());
            let number = number.or_default();
            if *number >= MAX_TARGETS_OF_NAMESPACE {
                return Err(MAX_TARGETS_OF_NAMESPACE);
            }
            *number += 1;
        }
        self.by_name.insert(name, target);
        Ok(())
    }

    pub(super) fn remove(&mut self, name: &str) {
        let Some(target) = self.by_name.remove(name) else {
            return;
        };
        if let Some(number) = self.by_namespace.get_mut(&target.namespace) {
            *number = number.saturating_sub(1);
            if *number == 0 {
                self.by_namespace.remove(&target.namespace);
            }
        }
    }

    pub(super) fn get_mut(&mut self, name: &str) -> Option<&mut Target> {
        self.by_name.get_mut(name)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Target> {
        self.by_name.values_mut()
    }

    pub(super) fn len(&self) -> usize {
        self.by_name.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_takes_no_target_of_others() {
        let mut targets = Targets::default();
        let mut insert = |namespace: &str, number: usize| {
            let target = Target {
                namespace: namespace.to_owned(),
                ..Target::default()
            };
            targets.insert(format!("{namespace}/{number}"), target)
        };
        for number in 0..MAX_TARGETS_OF_NAMESPACE {
            assert_eq!(insert("team-a", number), Ok(()));
        }
        let refused = Err(MAX_TARGETS_OF_NAMESPACE);
        assert_eq!(insert("team-a", MAX_TARGETS_OF_NAMESPACE), refused);
        assert_eq!(insert("team-b", 0), Ok(()));
        // The others are left for Configurators of other namespaces, and for ClusterConfigurators.
        for number in 0..MAX_TARGETS - MAX_TARGETS_OF_NAMESPACE - 1 {
            assert_eq!(insert("", number), Ok(()));
        }
        assert_eq!(insert("team-b", 1), Err(MAX_TARGETS));
        targets.remove("team-a/0");
        assert_eq!(targets.insert("team-b/1".into(), Target::default()), Ok(()));
    }
}
