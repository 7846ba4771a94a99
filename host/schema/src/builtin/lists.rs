//! How lists and maps of the built-in kinds merge.
//!
//! Facts of the Kubernetes API that the generated types do not carry. Definitions of `io.k8s.api` go without that prefix;
//! what is not listed is atomic if it is a list, and granular if it is a map or an object.

use MergeRule::{
    AtomicMap, Keys, Merged, MergedRetain, MergedSet, PatchOnly, Replace, RetainKeys, Set,
};

/// How one field merges.
#[derive(Clone, Copy, Debug)]
pub(super) enum MergeRule {
    /// Apply: items are told apart by these fields. Strategic merge patch: replaced.
    Keys(&'static [&'static str]),
    /// As `Keys`; a strategic merge patch merges by the second.
    Merged(&'static [&'static str], &'static str),
    /// As `Merged` with one key; in a patch, `$retainKeys` of an item are honoured.
    MergedRetain(&'static str),
    /// Apply: atomic. Strategic merge patch: merged by this field.
    PatchOnly(&'static str),
    /// A set for apply, replaced by a patch.
    Set,
    /// A set for apply and patch.
    MergedSet,
    /// A map that merges as a whole.
    AtomicMap,
    /// An object whose `$retainKeys` are honoured.
    RetainKeys,
    /// An object that a patch replaces.
    Replace,
}

/// The rules of the fields of a definition.
pub(super) fn rules(definition: &str) -> &'static [(&'static str, MergeRule)] {
    let name = short(definition);
    RULES
        .binary_search_by(|(n, _)| (*n).cmp(name))
        .ok()
        .and_then(|at| RULES.get(at))
        .map(|(_, rules)| *rules)
        .unwrap_or_default()
}

/// Whether values of a definition merge as a whole.
pub(super) fn is_atomic(definition: &str) -> bool {
    ATOMIC.binary_search(&short(definition)).is_ok()
}

/// The default of a field that is a key of a list.
pub(super) fn key_default(definition: &str, field: &str) -> Option<&'static str> {
    match (short(definition), field) {
        ("core.v1.ContainerPort" | "core.v1.ServicePort", "protocol") => Some("TCP"),
        _ => None,
    }
}

fn short(definition: &str) -> &str {
    definition.strip_prefix("io.k8s.api.").unwrap_or(definition)
}

/// Sorted by name.
const ATOMIC: &[&str] = &[
    "admissionregistration.v1.MatchResources",
    "admissionregistration.v1.NamedRuleWithOperations",
    "admissionregistration.v1.ParamKind",
    "admissionregistration.v1.ParamRef",
    "admissionregistration.v1.Variable",
    "autoscaling.v1.CrossVersionObjectReference",
    "core.v1.ConfigMapKeySelector",
    "core.v1.EndpointAddress",
    "core.v1.EndpointPort",
    "core.v1.EvictionResponder",
    "core.v1.FileKeySelector",
    "core.v1.LocalObjectReference",
    "core.v1.NodeSelector",
    "core.v1.NodeSelectorTerm",
    "core.v1.ObjectFieldSelector",
    "core.v1.ObjectReference",
    "core.v1.ResourceFieldSelector",
    "core.v1.ScopeSelector",
    "core.v1.SecretKeySelector",
    "core.v1.SecretReference",
    "core.v1.TopologySelectorTerm",
    "core.v1.TypedLocalObjectReference",
    "discovery.v1.EndpointPort",
    "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector",
    "io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference",
    "networking.v1.ServiceBackendPort",
    "rbac.v1.RoleRef",
    "rbac.v1.Subject",
];

/// Sorted by name.
#[rustfmt::skip]
const RULES: &[(&str, &[(&str, MergeRule)])] = &[
    ("admissionregistration.v1.MutatingAdmissionPolicySpec", &[("matchConditions", Merged(&["name"], "name"))]),
    ("admissionregistration.v1.MutatingWebhook", &[("matchConditions", Merged(&["name"], "name"))]),
    ("admissionregistration.v1.MutatingWebhookConfiguration", &[("webhooks", Merged(&["name"], "name"))]),
    ("admissionregistration.v1.ValidatingAdmissionPolicyBindingSpec", &[("validationActions", Set)]),
    ("admissionregistration.v1.ValidatingAdmissionPolicySpec", &[("matchConditions", Merged(&["name"], "name")), ("variables", Merged(&["name"], "name"))]),
    ("admissionregistration.v1.ValidatingAdmissionPolicyStatus", &[("conditions", Keys(&["type"]))]),
    ("admissionregistration.v1.ValidatingWebhook", &[("matchConditions", Merged(&["name"], "name"))]),
    ("admissionregistration.v1.ValidatingWebhookConfiguration", &[("webhooks", Merged(&["name"], "name"))]),
    ("apps.v1.DaemonSetStatus", &[("conditions", Merged(&["type"], "type"))]),
    ("apps.v1.DeploymentSpec", &[("strategy", RetainKeys)]),
    ("apps.v1.DeploymentStatus", &[("conditions", Merged(&["type"], "type"))]),
    ("apps.v1.ReplicaSetStatus", &[("conditions", Merged(&["type"], "type"))]),
    ("apps.v1.StatefulSetStatus", &[("conditions", Merged(&["type"], "type"))]),
    ("autoscaling.v2.HorizontalPodAutoscalerStatus", &[("conditions", Merged(&["type"], "type"))]),
    ("batch.v1.JobSchedulingConfiguration", &[("resourceClaims", Merged(&["name"], "name"))]),
    ("batch.v1.JobStatus", &[("conditions", PatchOnly("type"))]),
    ("batch.v1.PodFailurePolicyOnExitCodesRequirement", &[("values", Set)]),
    ("batch.v1.UncountedTerminatedPods", &[("failed", Set), ("succeeded", Set)]),
    ("certificates.v1.CertificateSigningRequestStatus", &[("conditions", Keys(&["type"]))]),
    ("certificates.v1.PodCertificateRequestStatus", &[("conditions", Merged(&["type"], "type"))]),
    ("core.v1.ComponentStatus", &[("conditions", Merged(&["type"], "type"))]),
    ("core.v1.Container", &[("env", Merged(&["name"], "name")), ("ports", Merged(&["containerPort", "protocol"], "containerPort")), ("volumeDevices", Merged(&["devicePath"], "devicePath")), ("volumeMounts", Merged(&["mountPath"], "mountPath"))]),
    ("core.v1.ContainerRestartRuleOnExitCodes", &[("values", Set)]),
    ("core.v1.ContainerStatus", &[("allocatedResourcesStatus", Merged(&["name"], "name")), ("volumeMounts", Merged(&["mountPath"], "mountPath"))]),
    ("core.v1.EphemeralContainer", &[("env", Keys(&["name"])), ("ports", Keys(&["containerPort", "protocol"])), ("volumeDevices", Keys(&["devicePath"])), ("volumeMounts", Keys(&["mountPath"]))]),
    ("core.v1.NamespaceStatus", &[("conditions", Merged(&["type"], "type"))]),
    ("core.v1.NodeAllocatableResourceClaimStatus", &[("containers", Set), ("mapping", Merged(&["name"], "name")), ("overhead", Merged(&["name"], "name"))]),
    ("core.v1.NodePodPreemptionPolicy", &[("disableResizePreemption", Set)]),
    ("core.v1.NodeSpec", &[("podCIDRs", MergedSet)]),
    ("core.v1.NodeStatus", &[("addresses", Merged(&["type"], "type")), ("conditions", Merged(&["type"], "type"))]),
    ("core.v1.PersistentVolumeClaimStatus", &[("conditions", Merged(&["type"], "type"))]),
    ("core.v1.PodSpec", &[("containers", Merged(&["name"], "name")), ("ephemeralContainers", Merged(&["name"], "name")), ("evictionResponders", Merged(&["name"], "name")), ("hostAliases", Merged(&["ip"], "ip")), ("imagePullSecrets", Merged(&["name"], "name")), ("initContainers", Merged(&["name"], "name")), ("nodeSelector", AtomicMap), ("resourceClaims", MergedRetain("name")), ("schedulingGates", Merged(&["name"], "name")), ("topologySpreadConstraints", Merged(&["topologyKey", "whenUnsatisfiable"], "topologyKey")), ("volumes", MergedRetain("name"))]),
    ("core.v1.PodStatus", &[("conditions", Merged(&["type"], "type")), ("hostIPs", PatchOnly("ip")), ("nodeAllocatableResourceClaimStatuses", Merged(&["resourceClaimName"], "resourceClaimName")), ("podIPs", Merged(&["ip"], "ip")), ("resourceClaimStatuses", MergedRetain("name")), ("volumeHealth", Keys(&["name"]))]),
    ("core.v1.PodVolumeHealth", &[("healthConditions", Merged(&["reason", "status"], "status"))]),
    ("core.v1.ReplicationControllerSpec", &[("selector", AtomicMap)]),
    ("core.v1.ReplicationControllerStatus", &[("conditions", Merged(&["type"], "type"))]),
    ("core.v1.ResourceRequirements", &[("claims", Keys(&["name"]))]),
    ("core.v1.ResourceStatus", &[("resources", Keys(&["resourceID"]))]),
    ("core.v1.ServiceAccount", &[("secrets", Merged(&["name"], "name"))]),
    ("core.v1.ServiceSpec", &[("ports", Merged(&["port", "protocol"], "port")), ("selector", AtomicMap)]),
    ("core.v1.ServiceStatus", &[("conditions", Merged(&["type"], "type"))]),
    ("core.v1.VolumeHealthStatus", &[("healthConditions", Merged(&["reason", "status"], "status"))]),
    ("core.v1.VolumeMount", &[("bindMountOptions", Set)]),
    ("discovery.v1.Endpoint", &[("addresses", Set)]),
    ("flowcontrol.v1.FlowSchemaStatus", &[("conditions", Merged(&["type"], "type"))]),
    ("flowcontrol.v1.NonResourcePolicyRule", &[("nonResourceURLs", Set), ("verbs", Set)]),
    ("flowcontrol.v1.PriorityLevelConfigurationStatus", &[("conditions", Merged(&["type"], "type"))]),
    ("flowcontrol.v1.ResourcePolicyRule", &[("apiGroups", Set), ("namespaces", Set), ("resources", Set), ("verbs", Set)]),
    ("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionStatus", &[("conditions", Keys(&["type"]))]),
    ("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", &[("finalizers", MergedSet), ("ownerReferences", Merged(&["uid"], "uid"))]),
    ("networking.v1.ServiceCIDRStatus", &[("conditions", Merged(&["type"], "type"))]),
    ("node.v1.Scheduling", &[("nodeSelector", AtomicMap)]),
    ("policy.v1.PodDisruptionBudgetSpec", &[("selector", Replace)]),
    ("policy.v1.PodDisruptionBudgetStatus", &[("conditions", Merged(&["type"], "type"))]),
    ("storage.v1.CSIDriverSpec", &[("volumeLifecycleModes", Set)]),
    ("storage.v1.CSINodeSpec", &[("drivers", Merged(&["name"], "name"))]),
    ("storage.v1.CSINodeStatus", &[("storageHealth", Merged(&["name"], "name"))]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted_for_the_search() {
        assert!(ATOMIC.is_sorted());
        assert!(RULES.is_sorted_by(|a, b| a.0 < b.0));
        for (_, fields) in RULES {
            for (_, rule) in *fields {
                if let Keys(keys) | Merged(keys, _) = rule {
                    assert!(keys.is_sorted(), "{keys:?}");
                }
            }
        }
    }
}
