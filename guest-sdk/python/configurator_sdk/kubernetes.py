"""Requests to the Kubernetes API, and objects as entries of a set. A `Resource` says which; each verb has only the options that it knows.

An object is named by its namespace, which is empty for a cluster-scoped one, and its name. `subresource` is `status`, `scale` and the like.
"""

from typing import Any

from . import document, wire
from .wire import KubernetesVerb, ObjectKey, PatchType, PropagationPolicy

__all__ = [
    "CONFIG_MAP",
    "CRON_JOB",
    "DAEMON_SET",
    "DEPLOYMENT",
    "JOB",
    "NAMESPACE",
    "NODE",
    "POD",
    "REPLICA_SET",
    "SECRET",
    "SERVICE",
    "STATEFUL_SET",
    "ObjectKey",
    "PatchType",
    "PropagationPolicy",
    "Resource",
    "content",
]


class Resource:
    """A kind of object, and where the API serves it.

    - `group`: empty for the core group.
    - `version`: such as `v1`.
    - `plural`: the name in the path, such as `configmaps`.
    - `kind`: the name in the object, such as `ConfigMap`.
    """

    __slots__ = ("group", "kind", "plural", "version")

    def __init__(self, group: str, version: str, plural: str, kind: str) -> None:
        self.group = group
        self.version = version
        self.plural = plural
        self.kind = kind

    @property
    def api_version(self) -> str:
        """`group/version`, or only the version in the core group: what an object says in `apiVersion`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def key(self, namespace: str, name: str) -> ObjectKey:
        """Names an object for `Output.wait`, to wait until it changes."""
        return ObjectKey(self.group, self.version, self.plural, namespace, name)

    def get(self, namespace: str, name: str, *, subresource: str | None = None, cached: bool = False) -> wire.Operation:
        """Reads one object. With `cached` the host may answer from its watch cache, which can be a moment behind."""
        request = self._request(KubernetesVerb.GET, namespace, name)
        request.subresource = subresource
        request.cached = cached or None
        return wire.Operation_Kubernetes(request)

    def list(
        self,
        namespace: str = "",
        *,
        labels: str | None = None,
        fields: str | None = None,
        subresource: str | None = None,
        cached: bool = False,
    ) -> wire.Operation:
        """Reads the objects of a namespace, or of the whole cluster, whose labels and fields match these selectors."""
        request = self._request(KubernetesVerb.LIST, namespace, "")
        request.label_selector = labels
        request.field_selector = fields
        request.subresource = subresource
        request.cached = cached or None
        return wire.Operation_Kubernetes(request)

    def patch(
        self,
        namespace: str,
        name: str,
        patch: Any,
        *,
        patch_type: PatchType | None = None,
        subresource: str | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
    ) -> wire.Operation:
        """Changes parts of an object, by a merge patch unless `patch_type` says otherwise.

        It is a conflict unless the stored object has this `uid` and `resource_version`, where they are given.
        """
        request = self._request(KubernetesVerb.PATCH, namespace, name)
        request.resource_body = document.text(patch)
        request.patch_type = patch_type
        request.subresource = subresource
        request.precondition = _precondition(uid, resource_version)
        return wire.Operation_Kubernetes(request)

    def delete(
        self,
        namespace: str,
        name: str,
        *,
        propagation: PropagationPolicy | None = None,
        subresource: str | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
    ) -> wire.Operation:
        """Deletes an object. One that is absent is success. `propagation`: what becomes of the objects that it owns.

        It is a conflict unless the stored object has this `uid` and `resource_version`, where they are given.
        """
        request = self._request(KubernetesVerb.DELETE, namespace, name)
        request.propagation_policy = propagation
        request.subresource = subresource
        request.precondition = _precondition(uid, resource_version)
        return wire.Operation_Kubernetes(request)

    def create(
        self,
        namespace: str,
        name: str,
        object: Any,
        *,
        must_not_exist: bool = False,
        subresource: str | None = None,
    ) -> wire.Operation:
        """Creates an object. One that exists is success, and is the result; with `must_not_exist` it is a conflict."""
        request = self._request(KubernetesVerb.CREATE, namespace, name)
        request.resource_body = document.text(object)
        request.precheck_exist = False if must_not_exist else None
        request.subresource = subresource
        return wire.Operation_Kubernetes(request)

    def replace(
        self,
        namespace: str,
        name: str,
        object: Any,
        *,
        subresource: str | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
    ) -> wire.Operation:
        """Replaces an object as a whole. A custom resource needs its version: in the object, or as `resource_version`.

        It is a conflict unless the stored object has this `uid` and `resource_version`, where they are given.
        """
        request = self._request(KubernetesVerb.REPLACE, namespace, name)
        request.resource_body = document.text(object)
        request.subresource = subresource
        request.precondition = _precondition(uid, resource_version)
        return wire.Operation_Kubernetes(request)

    def apply(
        self,
        namespace: str,
        name: str,
        object: Any,
        *,
        force: bool = False,
        subresource: str | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
    ) -> wire.Operation:
        """Server-side apply: the fields of `object` become ours, and those that we had applied before and that are missing now go.

        A field of another manager is a conflict, unless `force` takes it. So is a stored object that does not have this `uid` and
        `resource_version`, where they are given.
        """
        request = self._request(KubernetesVerb.APPLY, namespace, name)
        request.resource_body = document.text(object)
        request.force = force or None
        request.subresource = subresource
        request.precondition = _precondition(uid, resource_version)
        return wire.Operation_Kubernetes(request)

    def _request(self, verb: KubernetesVerb, namespace: str, name: str) -> wire.KubernetesResourceRequest:
        return wire.KubernetesResourceRequest(
            self.group,
            self.version,
            self.plural,
            self.kind,
            namespace,
            name,
            verb,
            None,
            None,
            None,
            None,
            None,
            None,
            None,
            None,
            None,
            None,
        )


def content(object: Any) -> wire.Content:
    """Describes an entry of a set: this object, with `apiVersion`, `kind` and `metadata.name`."""
    return wire.Content_Kubernetes(document.text(object))


def _precondition(uid: str | None, resource_version: str | None) -> wire.Precondition | None:
    if uid is None and resource_version is None:
        return None
    return wire.Precondition(uid, resource_version)


POD = Resource("", "v1", "pods", "Pod")
NODE = Resource("", "v1", "nodes", "Node")
NAMESPACE = Resource("", "v1", "namespaces", "Namespace")
CONFIG_MAP = Resource("", "v1", "configmaps", "ConfigMap")
SECRET = Resource("", "v1", "secrets", "Secret")
SERVICE = Resource("", "v1", "services", "Service")
DEPLOYMENT = Resource("apps", "v1", "deployments", "Deployment")
REPLICA_SET = Resource("apps", "v1", "replicasets", "ReplicaSet")
STATEFUL_SET = Resource("apps", "v1", "statefulsets", "StatefulSet")
DAEMON_SET = Resource("apps", "v1", "daemonsets", "DaemonSet")
JOB = Resource("batch", "v1", "jobs", "Job")
CRON_JOB = Resource("batch", "v1", "cronjobs", "CronJob")
