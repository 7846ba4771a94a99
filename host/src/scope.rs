//! The Configurators that a host runs.

use std::collections::{BTreeMap, BTreeSet};

use configurator_core::request::ObjectRef;
use kube::core::{Selector, SelectorExt as _};

use crate::controller::namespaces::NamespaceSet;

/// The Configurators that a host runs: by default all.
///
/// A selector matches the labels of a Configurator's namespace, never those of the Configurator. So a user who can write Configurators in a
/// namespace cannot choose the host that runs them, and with it their ceiling. For a ClusterConfigurator, a selector matches its own labels,
/// which only administrators of the cluster can write. With [`namespaces`](Self::namespaces), no ClusterConfigurator is in scope.
///
/// # Examples
/// ```
/// use configurator_host::scope::HostScope;
/// use kube::core::{Expression, Selector};
///
/// let selector = Selector::from(Expression::Equal("tier".into(), "gold".into()));
/// let scope = HostScope::default().selector(selector);
/// assert!(scope.is_limited());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostScope {
    namespaces: BTreeSet<String>,
    selector: Selector,
}

impl HostScope {
    /// Limits the scope to Configurators in these namespaces. An empty list sets no limit.
    #[must_use]
    pub fn namespaces(mut self, namespaces: impl IntoIterator<Item = String>) -> Self {
        self.namespaces = namespaces.into_iter().collect();
        self
    }

    /// Limits the scope to Configurators in namespaces that the selector matches, and to ClusterConfigurators that it matches.
    #[must_use]
    pub fn selector(mut self, selector: Selector) -> Self {
        self.selector = selector;
        self
    }

    /// Returns whether some Configurators are out of scope.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        !self.namespaces.is_empty() || !self.selector.selects_all()
    }

    /// Returns whether a Configurator with these labels is in scope. `None` for `namespaces`: they are unknown, and a selector matches none of
    /// them.
    pub(crate) fn contains(
        &self,
        key: &ObjectRef,
        labels: &BTreeMap<String, String>,
        namespaces: Option<&NamespaceSet>,
    ) -> bool {
        if key.namespace.is_empty() {
            return self.namespaces.is_empty() && self.selector.matches(labels);
        }
        if !self.namespaces.is_empty() && !self.namespaces.contains(&key.namespace) {
            return false;
        }
        if self.selector.selects_all() {
            return true;
        }
        let namespace = namespaces.and_then(|namespaces| namespaces.get(&key.namespace));
        namespace.is_some_and(|namespace| self.selector.matches(&namespace.labels))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use configurator_core::request::ObjectRef;
    use kube::core::{Expression, Selector};

    use super::HostScope;
    use crate::controller::namespaces::{KnownNamespace, NamespaceSet};

    #[test]
    fn configurators_are_chosen_by_the_labels_of_their_namespace() {
        let gold = BTreeMap::from([("tier".to_owned(), "gold".to_owned())]);
        let known = |labels: &BTreeMap<String, String>| KnownNamespace {
            uid: String::new(),
            labels: labels.clone(),
        };
        let none = BTreeMap::new();
        let namespaces = NamespaceSet::from([
            ("rich".to_owned(), known(&gold)),
            ("poor".to_owned(), known(&none)),
        ]);
        let selector = Selector::from(Expression::Equal("tier".into(), "gold".into()));
        let by_label = HostScope::default().selector(selector);
        let by_name = HostScope::default().namespaces(["poor".to_owned()]);
        let both = by_label.clone().namespaces(["poor".to_owned()]);
        let check = |namespace: &str, labels, listed, expected: [bool; 4]| {
            let key = ObjectRef {
                namespace: namespace.to_owned(),
                name: "one".to_owned(),
            };
            let scopes = [&HostScope::default(), &by_label, &by_name, &both];
            let contained = scopes.map(|scope| scope.contains(&key, labels, listed));
            assert_eq!(contained, expected, "{namespace}");
        };
        let listed = Some(&namespaces);
        check("rich", &none, listed, [true, true, false, false]);
        // The labels of the Configurator itself do not count.
        check("poor", &gold, listed, [true, false, true, false]);
        check("unknown", &none, listed, [true, false, false, false]);
        check("", &gold, listed, [true, true, false, false]);
        check("", &none, listed, [true, false, false, false]);
        check("rich", &none, None, [true, false, false, false]);
        check("poor", &none, None, [true, false, true, false]);
    }
}
