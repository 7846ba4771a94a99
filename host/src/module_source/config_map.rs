//! Modules that are in ConfigMaps.

use async_trait::async_trait;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::Api;

use super::{Fetched, ModulePolicies, ModuleSource, SourceError};
use crate::objects;
use crate::resource::ModuleSpec;

/// Modules are binary data of ConfigMaps, which Kubernetes limits to 1 MiB.
///
/// A Configurator pins such a module by its digest, so nothing is asked again while it runs.
#[derive(Clone)]
pub struct ConfigMaps {
    client: Client,
}

impl ConfigMaps {
    /// Those of this cluster.
    #[must_use]
    pub const fn new(client: Client) -> Self {
        Self { client }
    }
}

#[async_trait]
impl ModuleSource for ConfigMaps {
    async fn fetch(&self, module: &ModuleSpec, _: &ModulePolicies) -> Result<Fetched, SourceError> {
        let Some(place) = &module.config_map else {
            return Err(SourceError::NoSource {
                known: "configMap".to_owned(),
            });
        };
        let (namespace, name, key) = (&place.namespace, &place.name, &place.key);
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), namespace);
        let found = api.get_opt(name).await.map_err(|error| {
            let error = objects::explained(&error);
            SourceError::Unavailable(format!(
                "the ConfigMap {namespace}/{name} cannot be read: {error}"
            ))
        })?;
        let refused =
            |what: String| SourceError::Refused(format!("the ConfigMap {namespace}/{name} {what}"));
        let found = found.ok_or_else(|| refused("is not there".to_owned()))?;
        let mut data = found.binary_data.unwrap_or_default();
        match data.remove(key) {
            Some(bytes) => Ok(bytes.0.into()),
            None if found.data.unwrap_or_default().contains_key(key) => Err(refused(format!(
                "has {key:?} as text: a module is binaryData, as of `kubectl create configmap {name} --from-file={key}=MODULE`"
            ))),
            None => Err(refused(format!(
                "has no binaryData {key:?}; it has: {}",
                data.into_keys().collect::<Vec<_>>().join(", ")
            ))),
        }
    }
}
