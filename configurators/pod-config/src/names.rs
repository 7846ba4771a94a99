//! What a Pod's things are called.

use configurator_sdk::HandlerError;

use crate::owner::Workload;
use crate::pod::Metadata;

/// The longest name of an object in Kubernetes, in bytes.
const MAX_NAME: usize = 253;

/// The Pod's ConfigMap, in its namespace: `<pod>-config`.
///
/// # Errors
/// Fatal, when no object may have so long a name.
pub fn config_map(pod: &Metadata<'_>) -> Result<String, HandlerError> {
    let name = [&pod.name, "-config"].concat();
    if name.len() > MAX_NAME {
        return Err(HandlerError::fatal(format!(
            "the ConfigMap of this Pod would be called `{name}`, and a name has at most {MAX_NAME} characters: give the Pod a shorter name"
        )));
    }
    Ok(name)
}

/// The Pod's secret: `pod-<namespace>.<pod>`. A namespace has no dot, so no two Pods share one.
pub fn secret(pod: &Metadata<'_>) -> String {
    ["pod-", &pod.namespace, ".", &pod.name].concat()
}

/// Where the Pod is listed with those of the same workload: `pods.<namespace>.<kind>.<workload>`.
/// A Pod without a controller is its own workload.
pub fn index(pod: &Metadata<'_>, workload: Option<&Workload<'_>>) -> String {
    let (kind, name) = workload.map_or(("Pod", &*pod.name), |workload| {
        (workload.kind, workload.name)
    });
    ["pods.", &pod.namespace, ".", kind, ".", name].concat()
}
