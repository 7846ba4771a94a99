//! Which modules policies allow, whatever Configurators state.

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;

#[cfg(feature = "oci")]
use super::oci::Signer;
use crate::resource::ModuleSpec;

/// Without registries nothing verifies a signature.
#[cfg(not(feature = "oci"))]
type Signer = String;

/// Whose policy it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum PolicyOwner {
    /// That of the operator of the host.
    #[default]
    Host,
    /// The ConfiguratorPolicy of this name.
    Resource(String),
}

impl fmt::Display for PolicyOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host => f.write_str("the host's policy"),
            Self::Resource(name) => write!(f, "the ConfiguratorPolicy {name}"),
        }
    }
}

/// Which modules one policy allows: the part `modules` of the policy of a host or of a ConfiguratorPolicy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModulePolicy {
    #[serde(skip)]
    owner: PolicyOwner,
    /// Registries, or repositories in them, that modules may be pulled from: `ghcr.io/our-team/greeter`, or all below something as in
    /// `ghcr.io/our-team/*`. Where it is not given, any.
    registries: Option<Vec<String>>,
    /// Public keys in PEM. Where one is given, every module that is not a file must have a signature by one of them.
    #[serde(default)]
    signers: Vec<Signer>,
}

/// What a policy does not allow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// The repository is none of those that are listed.
    #[error("{policy} allows no modules of {repository}: modules.registries lists {listed}")]
    Registry {
        /// Whose policy.
        policy: PolicyOwner,
        /// Registry and repository.
        repository: String,
        /// What is listed.
        listed: String,
    },
    /// The source names an object that may not be read.
    #[error("spec.module.{field}: the policy of this host has {missing}")]
    Reference {
        /// The field that names it.
        field: &'static str,
        /// The rule that is missing.
        missing: String,
    },
    /// It has no signature by one who is listed.
    #[error("{policy} wants modules to be signed by one of modules.signers: {why}")]
    Unsigned {
        /// Whose policy.
        policy: PolicyOwner,
        /// What is missing.
        why: String,
    },
}

impl PolicyError {
    /// Returns whose policy does not allow it.
    #[must_use]
    pub const fn owner(&self) -> &PolicyOwner {
        match self {
            Self::Registry { policy, .. } | Self::Unsigned { policy, .. } => policy,
            Self::Reference { .. } => &PolicyOwner::Host,
        }
    }
}

impl ModulePolicy {
    /// Makes that of a ConfiguratorPolicy.
    ///
    /// # Errors
    /// When a signer is no public key in PEM. The message says why.
    pub fn of_resource(
        name: &str,
        registries: Option<Vec<String>>,
        signers: &[String],
    ) -> Result<Self, String> {
        let signers = signers.iter().cloned().map(Signer::try_from);
        let signers: Result<Vec<Signer>, _> = signers.collect();
        Ok(Self {
            owner: PolicyOwner::Resource(name.to_owned()),
            registries,
            signers: signers.map_err(|error| error.to_string())?,
        })
    }

    /// Checks that a module of this repository may be pulled: registry and repository, as `ghcr.io/our-team/greeter`.
    ///
    /// # Errors
    /// When it may not.
    pub fn check_repository(&self, repository: &str) -> Result<(), PolicyError> {
        let Some(listed) = &self.registries else {
            return Ok(());
        };
        // What is below something is not what only begins like it.
        let allows = |pattern: &String| match pattern.strip_suffix("/*") {
            Some(above) => repository
                .strip_prefix(above)
                .is_some_and(|rest| rest.starts_with('/')),
            None => repository == pattern,
        };
        if listed.iter().any(allows) {
            return Ok(());
        }
        Err(PolicyError::Registry {
            policy: self.owner.clone(),
            repository: repository.to_owned(),
            listed: match &**listed {
                [] => "none".to_owned(),
                listed => listed.join(", "),
            },
        })
    }

    /// Returns who may sign. Nobody has to if it is empty.
    #[cfg(feature = "oci")]
    #[must_use]
    pub fn signers(&self) -> &[Signer] {
        &self.signers
    }

    /// Makes the error for a module without a valid signature.
    pub(crate) fn unsigned(&self, why: impl Into<String>) -> PolicyError {
        PolicyError::Unsigned {
            policy: self.owner.clone(),
            why: why.into(),
        }
    }

    /// Checks that a module of this source, which has no signatures, may be run.
    ///
    /// # Errors
    /// When it may not.
    pub fn check_unsigned(&self, module: &ModuleSpec) -> Result<(), PolicyError> {
        if self.signers.is_empty() || module.file.is_some() {
            return Ok(());
        }
        Err(self.unsigned(
            "one in a ConfigMap has no signature; push it to a registry, or let the operator put it among the host's files",
        ))
    }
}

/// Policies that must all allow a module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModulePolicies(Vec<Arc<ModulePolicy>>);

impl FromIterator<Arc<ModulePolicy>> for ModulePolicies {
    fn from_iter<I: IntoIterator<Item = Arc<ModulePolicy>>>(policies: I) -> Self {
        Self(policies.into_iter().collect())
    }
}

impl ModulePolicies {
    /// Adds one.
    #[must_use]
    pub fn and(&self, policy: &Arc<ModulePolicy>) -> Self {
        self.iter().chain([policy]).cloned().collect()
    }

    /// Returns each of them.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<ModulePolicy>> {
        self.0.iter()
    }

    /// Checks each by [`ModulePolicy::check_unsigned`].
    ///
    /// # Errors
    /// At the first that does not allow it.
    pub fn check_unsigned(&self, module: &ModuleSpec) -> Result<(), PolicyError> {
        self.iter()
            .try_for_each(|policy| policy.check_unsigned(module))
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(registries: Option<&[&str]>, repository: &str, expected: Expect) {
        let policy = ModulePolicy {
            registries: registries.map(|list| list.iter().map(ToString::to_string).collect()),
            ..ModulePolicy::default()
        };
        let checked = policy.check_repository(repository);
        let text = checked.map_or_else(|error| error.to_string(), |()| "allowed".to_owned());
        expected.assert_eq(&text);
    }

    #[test]
    fn without_a_list_every_registry_is_allowed() {
        check(None, "docker.io/library/greeter", expect!["allowed"]);
    }

    #[test]
    fn a_list_allows_what_it_names_and_what_is_below() {
        let list: Option<&[&str]> = Some(&["ghcr.io/team/*", "example.com/one"]);
        check(list, "ghcr.io/team/greeter", expect!["allowed"]);
        check(list, "ghcr.io/team/deep/greeter", expect!["allowed"]);
        check(list, "example.com/one", expect!["allowed"]);
        for other in ["example.com/one-more", "ghcr.io/teams/greeter"] {
            let policy = ModulePolicy {
                registries: list.map(|list| list.iter().map(ToString::to_string).collect()),
                ..ModulePolicy::default()
            };
            assert!(policy.check_repository(other).is_err(), "{other}");
        }
    }

    #[test]
    fn an_empty_list_allows_nothing() {
        check(
            Some(&[]),
            "ghcr.io/team/greeter",
            expect![
                "the host's policy allows no modules of ghcr.io/team/greeter: modules.registries lists none"
            ],
        );
    }
}
