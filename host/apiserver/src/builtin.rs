//! The resources that are always there.

use std::sync::{Arc, OnceLock};

use crate::resource::{NameRule, Resource, Rules, ScalePaths, SelectableField};

/// All built-in resources, in the order of discovery.
pub(crate) fn resources() -> Vec<Arc<Resource>> {
    let core = |kind, plural| Row::new("", "v1", kind, plural);
    let apps = |kind, plural| Row::new("apps", "v1", kind, plural);
    let rbac = |kind, plural| {
        Row::new("rbac.authorization.k8s.io", "v1", kind, plural).names(NameRule::PathSegment)
    };
    let storage = |kind, plural| Row::new("storage.k8s.io", "v1", kind, plural);
    let admission = |kind, plural| Row::new("admissionregistration.k8s.io", "v1", kind, plural);
    let event_fields: &[(&str, &str)] = &[
        ("involvedObject.kind", ""),
        ("involvedObject.namespace", ""),
        ("involvedObject.name", ""),
        ("involvedObject.uid", ""),
        ("involvedObject.apiVersion", ""),
        ("involvedObject.resourceVersion", ""),
        ("involvedObject.fieldPath", ""),
        ("reason", ""),
        ("reportingComponent", ""),
        ("type", ""),
    ];
    vec![
        core("ConfigMap", "configmaps").short("cm"),
        core("Endpoints", "endpoints")
            .singular("endpoints")
            .short("ep")
            .create_on_update(),
        core("Event", "events")
            .short("ev")
            .fields(event_fields)
            .field_at("source", "/source/component", "")
            .create_on_update(),
        core("LimitRange", "limitranges")
            .short("limits")
            .create_on_update(),
        core("Namespace", "namespaces")
            .short("ns")
            .cluster()
            .status()
            .returns_deleted()
            .names(NameRule::Label)
            .fields(&[("status.phase", "")]),
        core("Node", "nodes")
            .short("no")
            .cluster()
            .status()
            .fields(&[("spec.unschedulable", "false")]),
        core("PersistentVolumeClaim", "persistentvolumeclaims")
            .short("pvc")
            .status()
            .returns_deleted(),
        core("PersistentVolume", "persistentvolumes")
            .short("pv")
            .cluster()
            .status()
            .returns_deleted(),
        core("Pod", "pods")
            .short("po")
            .all()
            .status()
            .generation()
            .returns_deleted()
            .fields(&[
                ("spec.nodeName", ""),
                ("spec.restartPolicy", ""),
                ("spec.schedulerName", ""),
                ("spec.serviceAccountName", ""),
                ("spec.hostNetwork", "false"),
                ("status.phase", ""),
                ("status.podIP", ""),
                ("status.nominatedNodeName", ""),
            ]),
        core("PodTemplate", "podtemplates")
            .generation()
            .returns_deleted(),
        core("ReplicationController", "replicationcontrollers")
            .short("rc")
            .all()
            .status()
            .generation()
            .fields(&[("status.replicas", "0")])
            .scaled("/spec/selector"),
        core("ResourceQuota", "resourcequotas")
            .short("quota")
            .status()
            .returns_deleted()
            .create_on_update(),
        core("Secret", "secrets").fields(&[("type", "")]),
        core("ServiceAccount", "serviceaccounts")
            .short("sa")
            .returns_deleted(),
        core("Service", "services")
            .short("svc")
            .all()
            .status()
            .returns_deleted()
            .names(NameRule::Label)
            .fields(&[("spec.clusterIP", ""), ("spec.type", "")]),
        Row::new("apiregistration.k8s.io", "v1", "APIService", "apiservices")
            .category("api-extensions")
            .cluster()
            .status()
            .names(NameRule::PathSegment),
        apps("ControllerRevision", "controllerrevisions"),
        apps("DaemonSet", "daemonsets")
            .short("ds")
            .all()
            .status()
            .generation(),
        apps("Deployment", "deployments")
            .short("deploy")
            .all()
            .status()
            .generation()
            .scaled("/spec/selector"),
        apps("ReplicaSet", "replicasets")
            .short("rs")
            .all()
            .status()
            .generation()
            .fields(&[("status.replicas", "0")])
            .scaled("/spec/selector"),
        apps("StatefulSet", "statefulsets")
            .short("sts")
            .all()
            .status()
            .generation()
            .scaled("/spec/selector"),
        Row::new("batch", "v1", "CronJob", "cronjobs")
            .short("cj")
            .all()
            .status()
            .generation(),
        Row::new("batch", "v1", "Job", "jobs")
            .all()
            .status()
            .generation()
            .fields(&[("status.successful", "0")]),
        Row::new(
            "autoscaling",
            "v2",
            "HorizontalPodAutoscaler",
            "horizontalpodautoscalers",
        )
        .short("hpa")
        .all()
        .status(),
        Row::new("networking.k8s.io", "v1", "IngressClass", "ingressclasses")
            .cluster()
            .generation(),
        Row::new("networking.k8s.io", "v1", "Ingress", "ingresses")
            .short("ing")
            .status()
            .generation(),
        Row::new(
            "networking.k8s.io",
            "v1",
            "NetworkPolicy",
            "networkpolicies",
        )
        .short("netpol")
        .generation(),
        Row::new(
            "policy",
            "v1",
            "PodDisruptionBudget",
            "poddisruptionbudgets",
        )
        .short("pdb")
        .status()
        .generation(),
        rbac("ClusterRoleBinding", "clusterrolebindings")
            .cluster()
            .create_on_update(),
        rbac("ClusterRole", "clusterroles")
            .cluster()
            .create_on_update(),
        rbac("RoleBinding", "rolebindings").create_on_update(),
        rbac("Role", "roles").create_on_update(),
        storage("CSIDriver", "csidrivers")
            .cluster()
            .returns_deleted(),
        storage("CSINode", "csinodes").cluster().returns_deleted(),
        storage("CSIStorageCapacity", "csistoragecapacities"),
        storage("StorageClass", "storageclasses")
            .short("sc")
            .cluster()
            .returns_deleted(),
        storage("VolumeAttachment", "volumeattachments")
            .cluster()
            .status()
            .returns_deleted(),
        Row::new(
            "scheduling.k8s.io",
            "v1",
            "PriorityClass",
            "priorityclasses",
        )
        .short("pc")
        .cluster()
        .generation(),
        Row::new("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses").cluster(),
        Row::new("coordination.k8s.io", "v1", "Lease", "leases").create_on_update(),
        Row::new("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices").generation(),
        Row::new(
            "certificates.k8s.io",
            "v1",
            "CertificateSigningRequest",
            "certificatesigningrequests",
        )
        .short("csr")
        .cluster()
        .status()
        .fields(&[("spec.signerName", "")]),
        Row::new(
            "authentication.k8s.io",
            "v1",
            "SelfSubjectReview",
            "selfsubjectreviews",
        )
        .cluster()
        .review(),
        Row::new(
            "authorization.k8s.io",
            "v1",
            "LocalSubjectAccessReview",
            "localsubjectaccessreviews",
        )
        .review(),
        Row::new(
            "authorization.k8s.io",
            "v1",
            "SelfSubjectAccessReview",
            "selfsubjectaccessreviews",
        )
        .cluster()
        .review(),
        Row::new(
            "authorization.k8s.io",
            "v1",
            "SelfSubjectRulesReview",
            "selfsubjectrulesreviews",
        )
        .cluster()
        .review(),
        Row::new(
            "authorization.k8s.io",
            "v1",
            "SubjectAccessReview",
            "subjectaccessreviews",
        )
        .cluster()
        .review(),
        // The same objects as the core group's, in other words.
        Row::new("events.k8s.io", "v1", "Event", "events")
            .short("ev")
            .stored_as("/events", "v1")
            .field_at("regarding.kind", "/involvedObject/kind", "")
            .field_at("regarding.namespace", "/involvedObject/namespace", "")
            .field_at("regarding.name", "/involvedObject/name", "")
            .field_at("regarding.uid", "/involvedObject/uid", "")
            .field_at("reason", "/reason", "")
            .field_at("type", "/type", "")
            .field_at("reportingController", "/reportingComponent", ""),
        admission(
            "MutatingWebhookConfiguration",
            "mutatingwebhookconfigurations",
        )
        .category("api-extensions")
        .cluster()
        .generation(),
        admission("ValidatingAdmissionPolicy", "validatingadmissionpolicies")
            .category("api-extensions")
            .cluster()
            .status()
            .generation(),
        admission(
            "ValidatingAdmissionPolicyBinding",
            "validatingadmissionpolicybindings",
        )
        .category("api-extensions")
        .cluster()
        .generation(),
        admission(
            "ValidatingWebhookConfiguration",
            "validatingwebhookconfigurations",
        )
        .category("api-extensions")
        .cluster()
        .generation(),
        Row::new(
            "apiextensions.k8s.io",
            "v1",
            "CustomResourceDefinition",
            "customresourcedefinitions",
        )
        .short("crd")
        .short("crds")
        .category("api-extensions")
        .cluster()
        .status()
        .generation()
        .unconditional(false),
    ]
    .into_iter()
    .map(Row::build)
    .collect()
}

/// A resource while it is being described.
struct Row(Resource);

impl Row {
    fn new(group: &str, version: &str, kind: &str, plural: &str) -> Self {
        let api_version = if group.is_empty() {
            version.to_owned()
        } else {
            format!("{group}/{version}")
        };
        Self(Resource {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            list_kind: format!("{kind}List"),
            plural: plural.to_owned(),
            singular: kind.to_lowercase(),
            short_names: Vec::new(),
            categories: Vec::new(),
            namespaced: true,
            status: false,
            scale: None,
            storage: Arc::from(format!("{group}/{plural}")),
            stored_api_version: api_version,
            rules: Rules {
                generation: false,
                create_on_update: false,
                unconditional_update: true,
                returns_deleted: false,
                names: NameRule::Subdomain,
            },
            review: false,
            fields: Vec::new(),
            custom: None,
            table: OnceLock::new(),
        })
    }

    fn build(self) -> Arc<Resource> {
        Arc::new(self.0)
    }

    fn short(mut self, name: &str) -> Self {
        self.0.short_names.push(name.to_owned());
        self
    }

    fn singular(mut self, name: &str) -> Self {
        self.0.singular = name.to_owned();
        self
    }

    fn category(mut self, name: &str) -> Self {
        self.0.categories.push(name.to_owned());
        self
    }

    fn all(self) -> Self {
        self.category("all")
    }

    fn cluster(mut self) -> Self {
        self.0.namespaced = false;
        self
    }

    fn review(mut self) -> Self {
        self.0.review = true;
        self
    }

    fn status(mut self) -> Self {
        self.0.status = true;
        self
    }

    fn generation(mut self) -> Self {
        self.0.rules.generation = true;
        self
    }

    fn create_on_update(mut self) -> Self {
        self.0.rules.create_on_update = true;
        self
    }

    fn unconditional(mut self, allowed: bool) -> Self {
        self.0.rules.unconditional_update = allowed;
        self
    }

    fn returns_deleted(mut self) -> Self {
        self.0.rules.returns_deleted = true;
        self
    }

    fn names(mut self, rule: NameRule) -> Self {
        self.0.rules.names = rule;
        self
    }

    fn stored_as(mut self, storage: &str, api_version: &str) -> Self {
        self.0.storage = Arc::from(storage);
        self.0.stored_api_version = api_version.to_owned();
        self
    }

    fn scaled(mut self, selector: &str) -> Self {
        self.0.scale = Some(ScalePaths {
            spec_replicas: "/spec/replicas".to_owned(),
            status_replicas: "/status/replicas".to_owned(),
            selector: Some(selector.to_owned()),
        });
        self
    }

    fn fields(mut self, fields: &[(&str, &'static str)]) -> Self {
        for (name, absent) in fields {
            let pointer = format!("/{}", name.replace('.', "/"));
            self.0.fields.push(SelectableField {
                name: (*name).to_owned(),
                pointer,
                absent,
            });
        }
        self
    }

    fn field_at(mut self, name: &str, pointer: &str, absent: &'static str) -> Self {
        self.0.fields.push(SelectableField {
            name: name.to_owned(),
            pointer: pointer.to_owned(),
            absent,
        });
        self
    }
}
