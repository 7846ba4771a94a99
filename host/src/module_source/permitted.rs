//! A source that reads only what the operator of the host allows.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use configurator_core::capability::Capabilities;

use super::{Fetched, ModulePolicies, ModuleSource, PolicyError, SourceError};
use crate::resource::ModuleSpec;

/// Holds the objects that a module's source names to the host's policy: the author of a Configurator has no rights of
/// their own in the namespaces that `configMap` and `pullSecret` name.
pub(crate) struct Permitted {
    pub(crate) source: Arc<dyn ModuleSource>,
    pub(crate) policy: Arc<Capabilities>,
}

impl Permitted {
    fn check(&self, module: &ModuleSpec) -> Result<(), SourceError> {
        for (field, plural, object) in module.references() {
            self.policy
                .check_reference(plural, &object)
                .map_err(|fault| PolicyError::Reference {
                    field,
                    missing: fault.message,
                })?;
        }
        Ok(())
    }
}

#[async_trait]
impl ModuleSource for Permitted {
    async fn fetch(
        &self,
        module: &ModuleSpec,
        policies: &ModulePolicies,
    ) -> Result<Fetched, SourceError> {
        self.check(module)?;
        self.source.fetch(module, policies).await
    }

    async fn version(
        &self,
        module: &ModuleSpec,
        policies: &ModulePolicies,
    ) -> Result<Option<String>, SourceError> {
        self.check(module)?;
        self.source.version(module, policies).await
    }

    fn interval(&self, module: &ModuleSpec) -> Duration {
        self.source.interval(module)
    }
}

#[cfg(test)]
mod tests {
    use configurator_core::capability::KubernetesRule;
    use configurator_core::request::KubernetesVerb;
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    struct Any;

    #[async_trait]
    impl ModuleSource for Any {
        async fn fetch(&self, _: &ModuleSpec, _: &ModulePolicies) -> Result<Fetched, SourceError> {
            Ok(Vec::new().into())
        }
    }

    /// What comes of each module, under a policy that lets Secrets and ConfigMaps of `modules` be read.
    #[tokio::test]
    async fn a_module_names_no_object_that_the_policy_does_not_let_be_read() {
        let rule = KubernetesRule {
            api_groups: vec![String::new()],
            resources: vec!["configmaps".into(), "secrets".into()],
            namespaces: vec!["modules".into()],
            verbs: vec![KubernetesVerb::Get],
            ..KubernetesRule::of_any_object()
        };
        let source = Permitted {
            source: Arc::new(Any),
            policy: Arc::new(Capabilities {
                kubernetes: vec![rule],
                ..Capabilities::default()
            }),
        };
        let config_map = |namespace: &str| json!({"digest": "sha256:0", "configMap": {"namespace": namespace, "name": "m", "key": "k"}});
        let pull_secret = |namespace: &str| json!({"oci": {"reference": "ghcr.io/team/m:1", "pullSecret": {"namespace": namespace, "name": "s"}}});
        let policies = ModulePolicies::default();
        let mut text = String::new();
        for module in [
            config_map("modules"),
            config_map("kube-system"),
            pull_secret("modules"),
            pull_secret("kube-system"),
            json!({"file": "m.wasm"}),
        ] {
            let module: ModuleSpec = serde_json::from_value(module).unwrap();
            for asked in [
                source.fetch(&module, &policies).await.map(drop),
                source.version(&module, &policies).await.map(drop),
            ] {
                text += &asked.map_or_else(|error| error.to_string(), |()| "allowed".to_owned());
                text += "\n";
            }
        }
        expect![[r#"
            allowed
            allowed
            spec.module.configMap: the policy of this host has no rule that allows kubernetes: {apiGroups: [""], resources: [configmaps], namespaces: [kube-system], names: [m], verbs: [get]}
            spec.module.configMap: the policy of this host has no rule that allows kubernetes: {apiGroups: [""], resources: [configmaps], namespaces: [kube-system], names: [m], verbs: [get]}
            allowed
            allowed
            spec.module.oci.pullSecret: the policy of this host has no rule that allows kubernetes: {apiGroups: [""], resources: [secrets], namespaces: [kube-system], names: [s], verbs: [get]}
            spec.module.oci.pullSecret: the policy of this host has no rule that allows kubernetes: {apiGroups: [""], resources: [secrets], namespaces: [kube-system], names: [s], verbs: [get]}
            allowed
            allowed
        "#]].assert_eq(&text);
    }
}
