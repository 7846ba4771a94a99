//! Which built-in kinds there are.

use k8s_openapi::{
    Resource,
    api::{
        admissionregistration::v1 as admission, apps::v1 as apps,
        authentication::v1 as authentication, authorization::v1 as authorization,
        autoscaling::v1 as autoscaling_v1, autoscaling::v2 as autoscaling, batch::v1 as batch,
        certificates::v1 as certificates, coordination::v1 as coordination, core::v1 as core,
        discovery::v1 as discovery, events::v1 as events, networking::v1 as networking,
        node::v1 as node, policy::v1 as policy, rbac::v1 as rbac, scheduling::v1 as scheduling,
        storage::v1 as storage,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1 as apiextensions,
    kube_aggregator::pkg::apis::apiregistration::v1 as apiregistration,
};
use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value};

/// The definition of `metadata`.
pub(crate) const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// One built-in kind.
pub(crate) struct BuiltinKind {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    /// The name of its definition, as `io.k8s.api.core.v1.Pod`.
    pub definition: &'static str,
    generate: fn(&mut SchemaGenerator),
}

impl BuiltinKind {
    const fn new<T: JsonSchema + Resource>(definition: &'static str) -> BuiltinKind {
        BuiltinKind {
            group: T::GROUP,
            version: T::VERSION,
            kind: T::KIND,
            definition,
            generate: |generator| {
                generator.subschema_for::<T>();
            },
        }
    }

    /// Its definition and all that it refers to, with references as in OpenAPI v3. A large value: drop it soon.
    pub(crate) fn definitions(&self) -> Map<String, Value> {
        let mut generator = generator();
        self.add_to(&mut generator);
        generator.take_definitions(false)
    }

    /// Adds its definitions to those of other kinds.
    pub(crate) fn add_to(&self, generator: &mut SchemaGenerator) {
        (self.generate)(generator);
    }
}

/// A generator of definitions with references as in OpenAPI v3.
pub(crate) fn generator() -> SchemaGenerator {
    SchemaSettings::openapi3().into_generator()
}

/// The definitions that a type needs.
pub(crate) fn definitions_of<T: JsonSchema>() -> Map<String, Value> {
    let mut generator = generator();
    generator.subschema_for::<T>();
    generator.take_definitions(false)
}

/// A kind and its place in the table.
pub(crate) fn find(
    group: &str,
    version: &str,
    kind: &str,
) -> Option<(usize, &'static BuiltinKind)> {
    KINDS
        .iter()
        .enumerate()
        .find(|(_, k)| k.kind == kind && k.version == version && k.group == group)
}

macro_rules! kinds {
    ($($module:ident $prefix:literal: $($kind:ident)*;)*) => {
        &[$($(BuiltinKind::new::<$module::$kind>(concat!($prefix, ".", stringify!($kind))),)*)*]
    };
}

static KINDS: &[BuiltinKind] = kinds! {
    core "io.k8s.api.core.v1": Pod ConfigMap Secret Service Node Namespace ServiceAccount PersistentVolume
        PersistentVolumeClaim Endpoints Event LimitRange ResourceQuota ReplicationController PodTemplate Binding;
    apiregistration "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1": APIService;
    apps "io.k8s.api.apps.v1": Deployment ReplicaSet StatefulSet DaemonSet ControllerRevision;
    batch "io.k8s.api.batch.v1": Job CronJob;
    rbac "io.k8s.api.rbac.v1": Role RoleBinding ClusterRole ClusterRoleBinding;
    coordination "io.k8s.api.coordination.v1": Lease;
    discovery "io.k8s.api.discovery.v1": EndpointSlice;
    networking "io.k8s.api.networking.v1": Ingress IngressClass NetworkPolicy IPAddress ServiceCIDR;
    policy "io.k8s.api.policy.v1": PodDisruptionBudget Eviction;
    autoscaling "io.k8s.api.autoscaling.v2": HorizontalPodAutoscaler;
    autoscaling_v1 "io.k8s.api.autoscaling.v1": HorizontalPodAutoscaler Scale;
    storage "io.k8s.api.storage.v1": StorageClass CSIDriver CSINode CSIStorageCapacity VolumeAttachment
        VolumeAttributesClass;
    scheduling "io.k8s.api.scheduling.v1": PriorityClass;
    node "io.k8s.api.node.v1": RuntimeClass;
    events "io.k8s.api.events.v1": Event;
    certificates "io.k8s.api.certificates.v1": CertificateSigningRequest;
    admission "io.k8s.api.admissionregistration.v1": ValidatingWebhookConfiguration MutatingWebhookConfiguration
        ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding MutatingAdmissionPolicy
        MutatingAdmissionPolicyBinding;
    authentication "io.k8s.api.authentication.v1": SelfSubjectReview TokenRequest TokenReview;
    authorization "io.k8s.api.authorization.v1": SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview
        LocalSubjectAccessReview;
    apiextensions "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1": CustomResourceDefinition;
};
