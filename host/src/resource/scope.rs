//! The scope of a Configurator: it has a namespace, or is a ClusterConfigurator.

use configurator_core::request::ObjectRef;
use kube::api::{Api, ApiResource, ListParams};
use kube::{Client, ResourceExt as _};
use serde_json::Value;

use super::{ClusterConfigurator, Configurator, ModuleSpec, counterpart};
use crate::objects;

impl Configurator {
    /// With the namespace of the Configurator where its module, or a source of its parameters, states none.
    #[must_use]
    pub(crate) fn resolved(mut self) -> Self {
        if let Some(own) = self.namespace() {
            let ModuleSpec {
                config_map, oci, ..
            } = &mut self.spec.module;
            let map = config_map.as_mut().map(|map| &mut map.namespace);
            let secret = oci.as_mut().and_then(|oci| oci.pull_secret.as_mut());
            let secret = secret.map(|secret| &mut secret.namespace);
            let sources = self.spec.parameters_from.iter_mut();
            let sources = sources
                .flat_map(|source| [&mut source.config_map, &mut source.secret])
                .flatten()
                .map(|reference| &mut reference.namespace);
            for namespace in map.into_iter().chain(secret).chain(sources) {
                if namespace.is_empty() {
                    namespace.clone_from(&own);
                }
            }
        }
        self
    }

    /// The namespace and name. A ClusterConfigurator has no namespace.
    #[must_use]
    pub fn key(&self) -> ObjectRef {
        objects::key_of(self)
    }
}

/// The kind of the Configurator with this key: a ClusterConfigurator has no namespace.
#[must_use]
pub fn kind_of(key: &ObjectRef) -> ApiResource {
    match key.namespace.as_str() {
        "" => ApiResource::erase::<ClusterConfigurator>(&()),
        _ => ApiResource::erase::<Configurator>(&()),
    }
}

/// How paths and keys name a Configurator in one segment: `NAMESPACE_NAME`, or `NAME` for a ClusterConfigurator. Names contain no underscore.
#[must_use]
pub fn segment_of(key: &ObjectRef) -> String {
    let ObjectRef { namespace, name } = key;
    match namespace.as_str() {
        "" => name.clone(),
        _ => format!("{namespace}_{name}"),
    }
}

/// Reads a Configurator; `None` if there is none.
///
/// # Errors
/// Those of the API, and if it cannot be parsed.
pub async fn get(client: &Client, key: &ObjectRef) -> Result<Option<Configurator>, kube::Error> {
    match key.namespace.as_str() {
        "" => {
            let api: Api<ClusterConfigurator> = Api::all(client.clone());
            Ok(api.get_opt(&key.name).await?.map(Into::into))
        }
        namespace => {
            Api::namespaced(client.clone(), namespace)
                .get_opt(&key.name)
                .await
        }
    }
}

/// Lists the Configurators and ClusterConfigurators of a cluster.
///
/// # Errors
/// Those of the API, and if one cannot be parsed.
pub async fn list(client: &Client) -> Result<Vec<Configurator>, kube::Error> {
    let params = ListParams::default();
    let cluster: Api<ClusterConfigurator> = Api::all(client.clone());
    let cluster = cluster.list(&params).await?.into_iter().map(Into::into);
    let namespaced: Api<Configurator> = Api::all(client.clone());
    let namespaced = namespaced.list(&params).await?.into_iter();
    Ok(cluster.chain(namespaced).collect())
}

/// Whether an object is a Configurator or a ClusterConfigurator.
#[must_use]
pub fn is_configurator(object: &Value) -> bool {
    matches!(
        objects::text(object, "/kind"),
        "Configurator" | "ClusterConfigurator"
    ) && objects::text(object, "/apiVersion").starts_with("configurator.dev/")
}

/// Reads a Configurator or a ClusterConfigurator from a file. As with kubectl, a Configurator without a namespace is in `default`.
///
/// # Errors
/// When it has another form.
pub fn read(object: Value) -> Result<Configurator, serde_json::Error> {
    let resource = counterpart::read::<Configurator, ClusterConfigurator>(object)?;
    Ok(resource.resolved())
}
