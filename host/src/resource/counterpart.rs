//! What a kind with namespaces and its counterpart for the cluster have in common: Configurator and ClusterConfigurator, Flow and ClusterFlow.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResourceExt, Resource};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::objects;

/// The definition of the kind `C` for the cluster, with the columns of the kind `N` with namespaces.
pub(super) fn definition<N: CustomResourceExt, C: CustomResourceExt>() -> CustomResourceDefinition {
    let mut definition = C::crd();
    let columns = N::crd().spec.versions.into_iter();
    for (version, same) in definition.spec.versions.iter_mut().zip(columns) {
        version.additional_printer_columns = same.additional_printer_columns;
    }
    definition
}

/// Reads an object of either kind from a file. As with kubectl, one without a namespace is in `default`, and one for the cluster has none.
///
/// # Errors
/// When it has another form.
pub(super) fn read<N, C>(object: Value) -> Result<N, serde_json::Error>
where
    N: Resource<DynamicType = ()> + DeserializeOwned,
    C: Resource<DynamicType = ()> + DeserializeOwned + Into<N>,
{
    if objects::text(&object, "/kind") == C::kind(&()) {
        let mut resource: C = serde_json::from_value(object)?;
        resource.meta_mut().namespace = None;
        return Ok(resource.into());
    }
    let mut resource: N = serde_json::from_value(object)?;
    let namespace = &mut resource.meta_mut().namespace;
    namespace.get_or_insert_with(|| "default".to_owned());
    Ok(resource)
}
