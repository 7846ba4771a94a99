//! From rules to checked capabilities.

use configurator_core::capability::{
    Capabilities, ConfigstoreRule, ExtensionRule, HttpRule, KubernetesRule, SecretstoreRule,
};
use configurator_core::request::{ConfigVerb, KubernetesVerb, SecretVerb};

use super::{DeclarationError, wrong};
use crate::resource::{CapabilitiesSpec, ConfigVerbSpec, KubernetesVerbSpec, SecretVerbSpec};

/// Checks capabilities: of a Configurator, or of a host's policy.
///
/// # Errors
/// When a method is not in upper case.
pub fn capabilities(spec: &CapabilitiesSpec) -> Result<Capabilities, DeclarationError> {
    for (index, rule) in spec.http.iter().enumerate() {
        if let Some(method) = rule
            .methods
            .iter()
            .find(|method| **method != method.to_ascii_uppercase())
        {
            let path = format!("spec.capabilities.http[{index}].methods");
            return Err(wrong(&path, &format!("{method:?} must be upper case")));
        }
    }
    Ok(Capabilities {
        kubernetes: spec
            .kubernetes
            .iter()
            .map(|rule| KubernetesRule {
                api_groups: rule.api_groups.clone(),
                resources: rule.resources.clone(),
                subresources: rule.subresources.clone(),
                namespaces: rule.namespaces.clone(),
                names: rule.names.clone(),
                verbs: rule
                    .verbs
                    .iter()
                    .filter_map(|verb| kubernetes_verb(*verb))
                    .collect(),
                watch: rule.verbs.contains(&KubernetesVerbSpec::Watch),
            })
            .collect(),
        configstore: spec
            .configstore
            .iter()
            .map(|rule| ConfigstoreRule {
                namespaces: rule.namespaces.clone(),
                prefixes: rule.prefixes.clone(),
                verbs: rule.verbs.iter().map(|verb| config_verb(*verb)).collect(),
            })
            .collect(),
        secretstore: spec
            .secretstore
            .iter()
            .map(|rule| SecretstoreRule {
                namespaces: rule.namespaces.clone(),
                names: rule.names.clone(),
                verbs: rule.verbs.iter().map(|verb| secret_verb(*verb)).collect(),
            })
            .collect(),
        http: spec
            .http
            .iter()
            .map(|rule| HttpRule {
                hosts: rule.hosts.clone(),
                methods: rule.methods.clone(),
            })
            .collect(),
        extension: spec
            .extension
            .iter()
            .map(|rule| ExtensionRule {
                extensions: rule.extensions.clone(),
                targets: rule.targets.clone(),
                verbs: rule.verbs.clone(),
            })
            .collect(),
    })
}

/// The verb of the sink; `watch` is none.
fn kubernetes_verb(verb: KubernetesVerbSpec) -> Option<KubernetesVerb> {
    Some(match verb {
        KubernetesVerbSpec::Get => KubernetesVerb::Get,
        KubernetesVerbSpec::List => KubernetesVerb::List,
        KubernetesVerbSpec::Patch => KubernetesVerb::Patch,
        KubernetesVerbSpec::Delete => KubernetesVerb::Delete,
        KubernetesVerbSpec::Create => KubernetesVerb::Create,
        KubernetesVerbSpec::Replace => KubernetesVerb::Replace,
        KubernetesVerbSpec::Apply => KubernetesVerb::Apply,
        KubernetesVerbSpec::Watch => return None,
    })
}

fn config_verb(verb: ConfigVerbSpec) -> ConfigVerb {
    match verb {
        ConfigVerbSpec::Get => ConfigVerb::Get,
        ConfigVerbSpec::Create => ConfigVerb::Create,
        ConfigVerbSpec::Update => ConfigVerb::Update,
        ConfigVerbSpec::Delete => ConfigVerb::Delete,
    }
}

fn secret_verb(verb: SecretVerbSpec) -> SecretVerb {
    match verb {
        SecretVerbSpec::Get => SecretVerb::Get,
        SecretVerbSpec::Create => SecretVerb::Create,
        SecretVerbSpec::Update => SecretVerb::Update,
        SecretVerbSpec::Delete => SecretVerb::Delete,
    }
}
