//! From a ConfiguratorPolicy to a checked policy.

use std::sync::Arc;
use std::time::Duration;

use configurator_core::capability::Capabilities;
use configurator_core::configurator::Configurator;
use configurator_core::glob;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::Selector;

use super::namespace::check_account_name;
use super::{DeclarationError, bytes, capabilities, count, format_bytes, span, watch, wrong};
use crate::module_source::ModulePolicy;
use crate::resource::policy::{ConfiguratorPolicySpec, ModulePolicySpec, PolicyLimitsSpec};

/// A checked ConfiguratorPolicy.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// The ServiceAccount of Configurators that name none.
    pub service_account: Option<String>,
    /// Patterns of names of ServiceAccounts.
    pub service_accounts: Vec<String>,
    /// What requests may do. Rules without namespaces are for that of the Configurator.
    pub capabilities: Arc<Capabilities>,
    /// Limits of Configurators.
    pub limits: PolicyLimits,
    /// Which modules Configurators may run.
    pub modules: Arc<ModulePolicy>,
    /// The share of the CPU time of modules, relative to other namespaces. `None`: 1.
    pub weight: Option<u32>,
    /// Limits what the Configurators of a namespace use together.
    pub quotas: Quotas,
}

/// What the Configurators of a namespace may use together. `None`: any number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quotas {
    /// The number of Configurators that run.
    pub configurators: Option<usize>,
    /// The number of watched objects.
    pub objects: Option<u64>,
    /// The number of runs that begin per second.
    pub runs_per_second: Option<u32>,
}

impl Quotas {
    /// The lower ones of both.
    #[must_use]
    pub fn lowest(self, other: Self) -> Self {
        Self {
            configurators: lower(self.configurators, other.configurators),
            objects: lower(self.objects, other.objects),
            runs_per_second: lower(self.runs_per_second, other.runs_per_second),
        }
    }
}

/// The lower one of two limits, of which either may be absent.
pub(crate) fn lower<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// The highest values that a Configurator may have; `None`: any.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PolicyLimits {
    memory: Option<u64>,
    deadline: Option<Duration>,
    concurrency: Option<usize>,
}

impl PolicyLimits {
    /// The lower ones of both.
    #[must_use]
    pub fn lowest(self, other: Self) -> Self {
        Self {
            memory: lower(self.memory, other.memory),
            deadline: lower(self.deadline, other.deadline),
            concurrency: lower(self.concurrency, other.concurrency),
        }
    }

    /// Checks the limits of a Configurator.
    ///
    /// # Errors
    /// At the first one that is higher.
    pub fn check(&self, configurator: &Configurator) -> Result<(), DeclarationError> {
        let limits = &configurator.limits;
        let exceeds = |path: &str, value: String, most: String| {
            let message = format!(
                "is {value}, and the ConfiguratorPolicies of the namespace allow {most} at most"
            );
            Err(wrong(path, &message))
        };
        match self {
            Self {
                memory: Some(most), ..
            } if limits.memory > *most => exceeds(
                "spec.limits.memory",
                format_bytes(limits.memory),
                format_bytes(*most),
            ),
            Self {
                deadline: Some(most),
                ..
            } if limits.deadline > *most => exceeds(
                "spec.limits.deadline",
                format!("{:?}", limits.deadline),
                format!("{most:?}"),
            ),
            Self {
                concurrency: Some(most),
                ..
            } if configurator.concurrency > *most => exceeds(
                "spec.concurrency",
                configurator.concurrency.to_string(),
                most.to_string(),
            ),
            Self { .. } => Ok(()),
        }
    }
}

impl Policy {
    /// Checks the resource.
    ///
    /// # Errors
    /// At the first thing that is wrong.
    pub fn check(name: &str, spec: &ConfiguratorPolicySpec) -> Result<Self, DeclarationError> {
        if let Some(account) = &spec.service_account_name {
            check_account_name(account)?;
        }
        let PolicyLimitsSpec {
            memory,
            deadline,
            concurrency,
        } = &spec.limits;
        let memory = memory.as_ref();
        let limits = PolicyLimits {
            memory: memory
                .map(|memory| bytes("spec.limits.memory", memory))
                .transpose()?,
            deadline: deadline
                .map(|deadline| span("spec.limits.deadline", deadline))
                .transpose()?,
            concurrency: concurrency
                .map(|concurrency| count("spec.limits.concurrency", concurrency))
                .transpose()?,
        };
        for (path, number) in [
            ("spec.weight", spec.weight),
            ("spec.quotas.runsPerSecond", spec.quotas.runs_per_second),
        ] {
            number.map(|number| count(path, number)).transpose()?;
        }
        let ModulePolicySpec {
            registries,
            signers,
        } = &spec.modules;
        let modules = ModulePolicy::of_resource(name, registries.clone(), signers);
        let modules = modules.map_err(|error| wrong("spec.modules.signers", &error))?;
        Ok(Self {
            service_account: spec.service_account_name.clone(),
            service_accounts: spec.service_accounts.clone(),
            capabilities: Arc::new(capabilities(&spec.capabilities)?),
            limits,
            modules: Arc::new(modules),
            weight: spec.weight,
            quotas: Quotas {
                configurators: spec
                    .quotas
                    .configurators
                    .map(|most| usize::try_from(most).unwrap_or(usize::MAX)),
                objects: spec.quotas.objects,
                runs_per_second: spec.quotas.runs_per_second,
            },
        })
    }

    /// What requests of a Configurator of this namespace may do.
    #[must_use]
    pub fn capabilities_in(&self, namespace: &str) -> Arc<Capabilities> {
        let is_whole = |rules: &Capabilities| {
            rules
                .kubernetes
                .iter()
                .all(|rule| !rule.namespaces.is_empty())
        };
        if is_whole(&self.capabilities) {
            return self.capabilities.clone();
        }
        let mut rules = Capabilities::clone(&self.capabilities);
        for rule in &mut rules.kubernetes {
            if rule.namespaces.is_empty() {
                rule.namespaces = vec![namespace.to_owned()];
            }
        }
        Arc::new(rules)
    }

    /// Whether a Configurator may act as a ServiceAccount with this name.
    #[must_use]
    pub fn allows_account(&self, name: &str) -> bool {
        self.service_accounts
            .iter()
            .any(|pattern| glob::matches(pattern, name))
    }
}

/// Checks the selector of a policy.
///
/// # Errors
/// When an expression has an unknown operator, lacks values, or contains something that is not a label.
pub fn selector(spec: &LabelSelector) -> Result<Selector, DeclarationError> {
    watch::selector("spec.namespaceSelector", spec)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::{Value, json};

    use super::*;

    fn check(spec: Value, expected: Expect) {
        let spec: ConfiguratorPolicySpec = serde_json::from_value(spec).unwrap();
        let checked =
            selector(&spec.namespace_selector).and_then(|_| Policy::check("teams", &spec));
        let told = checked.map_or_else(|error| error.to_string(), |_| "valid".to_owned());
        expected.assert_eq(&told);
    }

    #[test]
    fn a_policy_with_an_error_is_refused() {
        check(json!({}), expect!["valid"]);
        // Without values it would select no namespace, and so limit none.
        let expressions = json!([{"key": "tenant", "operator": "In"}]);
        check(
            json!({"namespaceSelector": {"matchExpressions": expressions}}),
            expect![[r#"spec.namespaceSelector: In of "tenant" needs values"#]],
        );
        check(
            json!({"serviceAccountName": "kube:admin"}),
            expect![[
                r#"spec.serviceAccountName: "kube:admin" is no name of a ServiceAccount: use up to 253 lower-case letters, digits, - and ."#
            ]],
        );
        check(
            json!({"modules": {"signers": ["nobody"]}}),
            expect![[
                r#"spec.modules.signers: a signer is a public key in PEM, which begins with -----BEGIN PUBLIC KEY-----"#
            ]],
        );
        check(
            json!({"weight": 0}),
            expect!["spec.weight: must be at least 1"],
        );
        check(
            json!({"limits": {"memory": "much"}}),
            expect![[r#"spec.limits.memory: "much" is no number of bytes such as 64Mi"#]],
        );
    }
}
