//! Requests to the Kubernetes API.
//!
//! A [`Resource`] says which; its methods make the request, and each verb has only the options that it knows.
//!
//! ```
//! use configurator_sdk::Request;
//! use configurator_sdk::kubernetes::{CONFIG_MAP, NODE, POD, Resource};
//! use serde_json::json;
//!
//! const WIDGET: Resource = Resource::new("example.com", "v1", "widgets", "Widget");
//!
//! let node = Request::new("node", NODE.get("worker-1").cached());
//! let pods = Request::new("pods", POD.list("shop").labels("app=web"));
//! let map = Request::new("map", CONFIG_MAP.apply(("shop", "web"), json!({"data": {"a": "1"}})).force());
//! let gone = Request::new("gone", WIDGET.delete(("shop", "old")).uid("6e2d"));
//! assert_eq!(pods.to_string(), "pods: kubernetes list pods shop/, labels app=web");
//! # let _ = (node, map, gone);
//! ```

use std::marker::PhantomData;

use crate::bindings::configurator::handler::requests::{
    KubernetesResourceRequest, KubernetesVerb, Operation,
};
use crate::{Json, ObjectKey, Precondition};

#[doc(inline)]
pub use crate::bindings::configurator::handler::requests::{PatchType, PropagationPolicy};

/// `v1` Pods.
pub const POD: Resource = Resource::new("", "v1", "pods", "Pod");
/// `v1` Nodes, cluster-scoped.
pub const NODE: Resource = Resource::new("", "v1", "nodes", "Node");
/// `v1` Namespaces, cluster-scoped.
pub const NAMESPACE: Resource = Resource::new("", "v1", "namespaces", "Namespace");
/// `v1` ConfigMaps.
pub const CONFIG_MAP: Resource = Resource::new("", "v1", "configmaps", "ConfigMap");
/// `v1` Secrets.
pub const SECRET: Resource = Resource::new("", "v1", "secrets", "Secret");
/// `v1` Services.
pub const SERVICE: Resource = Resource::new("", "v1", "services", "Service");
/// `apps/v1` Deployments.
pub const DEPLOYMENT: Resource = Resource::new("apps", "v1", "deployments", "Deployment");
/// `apps/v1` ReplicaSets.
pub const REPLICA_SET: Resource = Resource::new("apps", "v1", "replicasets", "ReplicaSet");
/// `apps/v1` StatefulSets.
pub const STATEFUL_SET: Resource = Resource::new("apps", "v1", "statefulsets", "StatefulSet");
/// `apps/v1` DaemonSets.
pub const DAEMON_SET: Resource = Resource::new("apps", "v1", "daemonsets", "DaemonSet");
/// `batch/v1` Jobs.
pub const JOB: Resource = Resource::new("batch", "v1", "jobs", "Job");
/// `batch/v1` CronJobs.
pub const CRON_JOB: Resource = Resource::new("batch", "v1", "cronjobs", "CronJob");

/// A kind of object, and where the API serves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resource {
    /// Empty for the core group.
    pub group: &'static str,
    /// Such as `v1`.
    pub version: &'static str,
    /// The name in the path, such as `configmaps`.
    pub plural: &'static str,
    /// The name in the object, such as `ConfigMap`.
    pub kind: &'static str,
}

impl Resource {
    /// A resource by its four names.
    pub const fn new(
        group: &'static str,
        version: &'static str,
        plural: &'static str,
        kind: &'static str,
    ) -> Resource {
        Resource {
            group,
            version,
            plural,
            kind,
        }
    }

    /// The resource of a type of `k8s-openapi`.
    ///
    /// ```
    /// use configurator_sdk::k8s_openapi::api::apps::v1::Deployment;
    /// use configurator_sdk::kubernetes::{DEPLOYMENT, Resource};
    ///
    /// assert_eq!(Resource::of::<Deployment>(), DEPLOYMENT);
    /// ```
    #[cfg(feature = "k8s-openapi")]
    pub const fn of<K: k8s_openapi::Resource>() -> Resource {
        Resource::new(K::GROUP, K::VERSION, K::URL_PATH_SEGMENT, K::KIND)
    }

    /// `group/version`, or only the version in the core group: what an object says in `apiVersion`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            [self.group, self.version].join("/")
        }
    }

    /// Names an object for [`Wake`](crate::Wake), to wait until it changes.
    pub fn key(&self, at: impl Into<At>) -> ObjectKey {
        let At { namespace, name } = at.into();
        ObjectKey {
            group: self.group.to_owned(),
            version: self.version.to_owned(),
            plural: self.plural.to_owned(),
            namespace,
            name,
        }
    }

    /// Reads one object.
    pub fn get(&self, at: impl Into<At>) -> Kubernetes<Get> {
        self.request(KubernetesVerb::Get, at, None)
    }

    /// Reads the objects of a namespace; of the whole cluster where the namespace is empty.
    pub fn list(&self, namespace: impl Into<String>) -> Kubernetes<List> {
        self.request(
            KubernetesVerb::List,
            At {
                namespace: namespace.into(),
                name: String::new(),
            },
            None,
        )
    }

    /// Changes parts of an object, by a merge patch unless [`Kubernetes::patch_type`] says otherwise.
    pub fn patch(&self, at: impl Into<At>, patch: impl Into<Json>) -> Kubernetes<Patch> {
        self.request(KubernetesVerb::Patch, at, Some(patch.into()))
    }

    /// Deletes an object. One that is absent is success.
    pub fn delete(&self, at: impl Into<At>) -> Kubernetes<Delete> {
        self.request(KubernetesVerb::Delete, at, None)
    }

    /// Creates an object. One that exists is success, unless [`Kubernetes::must_not_exist`] is set.
    pub fn create(&self, at: impl Into<At>, object: impl Into<Json>) -> Kubernetes<Create> {
        self.request(KubernetesVerb::Create, at, Some(object.into()))
    }

    /// Replaces an object as a whole. A custom resource needs its version: in the object, or by
    /// [`Kubernetes::resource_version`].
    pub fn replace(&self, at: impl Into<At>, object: impl Into<Json>) -> Kubernetes<Replace> {
        self.request(KubernetesVerb::Replace, at, Some(object.into()))
    }

    /// Server-side apply: the fields of `object` become ours, and those that we had applied before and that are
    /// missing now go.
    pub fn apply(&self, at: impl Into<At>, object: impl Into<Json>) -> Kubernetes<Apply> {
        self.request(KubernetesVerb::Apply, at, Some(object.into()))
    }

    fn request<V>(
        &self,
        verb: KubernetesVerb,
        at: impl Into<At>,
        body: Option<Json>,
    ) -> Kubernetes<V> {
        let At { namespace, name } = at.into();
        Kubernetes {
            request: KubernetesResourceRequest {
                group: self.group.to_owned(),
                version: self.version.to_owned(),
                plural: self.plural.to_owned(),
                kind: self.kind.to_owned(),
                namespace,
                name,
                verb,
                subresource: None,
                field_selector: None,
                label_selector: None,
                resource_body: body.map(Json::into_string),
                patch_type: None,
                precheck_exist: None,
                force: None,
                cached: None,
                propagation_policy: None,
                precondition: None,
            },
            verb: PhantomData,
        }
    }
}

/// Where an object is: `"name"` for a cluster-scoped one, `("namespace", "name")` for any other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct At {
    /// Empty for a cluster-scoped object.
    pub namespace: String,
    /// The object's name.
    pub name: String,
}

impl From<&str> for At {
    fn from(name: &str) -> At {
        At {
            namespace: String::new(),
            name: name.to_owned(),
        }
    }
}

impl From<String> for At {
    fn from(name: String) -> At {
        At {
            namespace: String::new(),
            name,
        }
    }
}

impl<N: Into<String>, M: Into<String>> From<(N, M)> for At {
    fn from((namespace, name): (N, M)) -> At {
        At {
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

/// A request under construction; give it to [`Request::new`](crate::Request::new). `V` is its verb.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Kubernetes<V> {
    request: KubernetesResourceRequest,
    verb: PhantomData<V>,
}

macro_rules! verbs {
    ($($(#[$doc:meta])* $verb:ident),* $(,)?) => {
        $($(#[$doc])* #[derive(Clone, Copy, Debug, PartialEq, Eq)] pub enum $verb {})*
    };
}

verbs! {
    /// Verb of [`Resource::get`].
    Get,
    /// Verb of [`Resource::list`].
    List,
    /// Verb of [`Resource::patch`].
    Patch,
    /// Verb of [`Resource::delete`].
    Delete,
    /// Verb of [`Resource::create`].
    Create,
    /// Verb of [`Resource::replace`].
    Replace,
    /// Verb of [`Resource::apply`].
    Apply,
}

/// A verb that reads.
pub trait Reads {}
impl Reads for Get {}
impl Reads for List {}

/// A verb that changes or deletes an object that may exist.
pub trait Changes {}
impl Changes for Patch {}
impl Changes for Delete {}
impl Changes for Replace {}
impl Changes for Apply {}

impl<V> Kubernetes<V> {
    /// `status`, `scale` and the like.
    pub fn subresource(mut self, subresource: impl Into<String>) -> Self {
        self.request.subresource = Some(subresource.into());
        self
    }
}

impl<V: Reads> Kubernetes<V> {
    /// May be answered from the host's watch cache, which can be a moment behind. Default: read at the server. A host
    /// of this version reads at the server all the same.
    pub fn cached(mut self) -> Self {
        self.request.cached = Some(true);
        self
    }
}

impl<V: Changes> Kubernetes<V> {
    /// A conflict unless the stored object has this uid.
    pub fn uid(mut self, uid: impl Into<String>) -> Self {
        self.precondition().uid = Some(uid.into());
        self
    }

    /// A conflict unless the stored object has this resource version.
    pub fn resource_version(mut self, version: impl Into<String>) -> Self {
        self.precondition().resource_version = Some(version.into());
        self
    }

    fn precondition(&mut self) -> &mut Precondition {
        self.request.precondition.get_or_insert(Precondition {
            uid: None,
            resource_version: None,
        })
    }
}

impl Kubernetes<List> {
    /// Only objects whose labels match.
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.request.label_selector = Some(selector.into());
        self
    }

    /// Only objects whose fields match.
    pub fn fields(mut self, selector: impl Into<String>) -> Self {
        self.request.field_selector = Some(selector.into());
        self
    }
}

impl Kubernetes<Patch> {
    /// How the patch is written. Default: merge.
    pub fn patch_type(mut self, patch_type: PatchType) -> Self {
        self.request.patch_type = Some(patch_type);
        self
    }
}

impl Kubernetes<Create> {
    /// An object that exists is a conflict. Default: it is success, and is the result.
    pub fn must_not_exist(mut self) -> Self {
        self.request.precheck_exist = Some(false);
        self
    }
}

impl Kubernetes<Apply> {
    /// Takes fields from other managers. Default: a field of another manager is a conflict.
    pub fn force(mut self) -> Self {
        self.request.force = Some(true);
        self
    }
}

impl Kubernetes<Delete> {
    /// What becomes of the objects that it owns. Default: deleted in the background.
    pub fn propagation(mut self, policy: PropagationPolicy) -> Self {
        self.request.propagation_policy = Some(policy);
        self
    }
}

impl<V> From<Kubernetes<V>> for Operation {
    fn from(kubernetes: Kubernetes<V>) -> Operation {
        Operation::Kubernetes(kubernetes.request)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;
    use crate::Request;

    fn check(operation: impl Into<Operation>, line: Expect) {
        line.assert_eq(&Request::new("r", operation).to_string());
    }

    #[test]
    fn each_verb_has_its_options() {
        let at = ("shop", "web");
        check(
            NODE.get("n-1").cached(),
            expect!["r: kubernetes get nodes n-1, cached"],
        );
        check(
            POD.list("").labels("a=b").fields("spec.nodeName=n-1"),
            expect!["r: kubernetes list pods, fields spec.nodeName=n-1, labels a=b"],
        );
        check(
            DEPLOYMENT
                .patch(at, json!([]))
                .patch_type(PatchType::JsonPatch)
                .subresource("scale")
                .resource_version("7"),
            expect![
                "r: kubernetes json-patch deployments.apps/scale shop/web [], resource-version 7"
            ],
        );
        check(
            POD.create(at, json!({"kind": "Pod"})).must_not_exist(),
            expect![[r#"r: kubernetes create pods shop/web {"kind":"Pod"}, no precheck"#]],
        );
        check(
            POD.replace(at, "{}").uid("u"),
            expect!["r: kubernetes replace pods shop/web {}, uid u"],
        );
        check(
            POD.apply(at, "{}").force(),
            expect!["r: kubernetes apply pods shop/web {}, forced"],
        );
        check(
            POD.delete(at)
                .propagation(PropagationPolicy::Orphan)
                .uid("u"),
            expect!["r: kubernetes delete pods shop/web, uid u"],
        );
    }

    #[test]
    fn what_is_not_said_is_left_to_the_host() {
        let Operation::Kubernetes(request) = POD.create("p", "{}").into() else {
            panic!("another sink")
        };
        assert_eq!(
            (request.precheck_exist, request.force, request.cached),
            (None, None, None)
        );
        assert_eq!(
            (
                request.patch_type,
                request.propagation_policy,
                request.precondition
            ),
            (None, None, None)
        );
    }

    #[test]
    fn the_core_group_has_no_slash() {
        assert_eq!(POD.api_version(), "v1");
        assert_eq!(DEPLOYMENT.api_version(), "apps/v1");
    }
}
