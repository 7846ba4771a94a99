//! Which modules a host's operator allows, whatever Configurators say.

use serde::Deserialize;

#[cfg(feature = "oci")]
use super::oci::Signer;
use crate::resource::ModuleSpec;

/// What the operator of a host allows of modules: the part `modules` of the policy.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModulePolicy {
    /// Registries, or repositories in them, that modules may be pulled from: `ghcr.io/our-team/greeter`, or all below something as in
    /// `ghcr.io/our-team/*`. Where it is not given, any.
    registries: Option<Vec<String>>,
    /// Public keys in PEM. Where one is given, every module that is not a file must have a signature by one of them.
    #[cfg(feature = "oci")]
    #[serde(default)]
    signers: Vec<Signer>,
}

/// What the policy does not allow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// The repository is none of those that are listed.
    #[error(
        "the host's policy allows no modules of {repository}: modules.registries lists {listed}"
    )]
    Registry {
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
    #[error("the host's policy wants modules to be signed by one of modules.signers: {0}")]
    Unsigned(String),
}

impl ModulePolicy {
    /// Whether a module of this repository may be pulled: registry and repository, as `ghcr.io/our-team/greeter`.
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
            repository: repository.to_owned(),
            listed: match &**listed {
                [] => "none".to_owned(),
                listed => listed.join(", "),
            },
        })
    }

    /// Who may sign; nobody has to where it is empty.
    #[cfg(feature = "oci")]
    #[must_use]
    pub fn signers(&self) -> &[Signer] {
        &self.signers
    }

    /// Whether a module of this source, which has no signatures, may be run.
    ///
    /// # Errors
    /// When it may not.
    pub fn check_unsigned(&self, module: &ModuleSpec) -> Result<(), PolicyError> {
        #[cfg(feature = "oci")]
        if !self.signers.is_empty() && module.file.is_none() {
            let why = "one in a ConfigMap has no signature; push it to a registry, or let the operator put it among the host's files";
            return Err(PolicyError::Unsigned(why.to_owned()));
        }
        let _ = module;
        Ok(())
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
