"""Requests to the config store, and its keys as entries of a set.

They name only the leaf: the host keeps the layers above it. Deleting what is absent is success.
"""

from . import wire
from .wire import (
    ConfigAppConfVerb,
    ConfigBasicVerb,
    ConfigTwoLayersVerb,
    ConfigType,
    ConfigVerb,
)

__all__ = ["AppConf", "Basic", "Entry", "TwoLayers", "transaction"]


class Entry:
    """The configuration of one cluster resource.

    With the resource's uid, a write replaces the entry of an older uid and what hangs on it, and a `get` finds only this uid.
    """

    __slots__ = ("config_type", "name", "namespace", "uid", "workload_kind")

    def __init__(
        self,
        config_type: ConfigType,
        name: str,
        *,
        namespace: str | None = None,
        workload_kind: str | None = None,
        uid: str | None = None,
    ) -> None:
        self.config_type = config_type
        self.name = name
        self.namespace = namespace
        self.workload_kind = workload_kind
        self.uid = uid

    @classmethod
    def pod(cls, namespace: str, name: str, *, uid: str | None = None) -> "Entry":
        """Of a Pod."""
        return cls(ConfigType.POD, name, namespace=namespace, uid=uid)

    @classmethod
    def node(cls, name: str, *, uid: str | None = None) -> "Entry":
        """Of a Node."""
        return cls(ConfigType.NODE, name, uid=uid)

    @classmethod
    def of_namespace(cls, name: str, *, uid: str | None = None) -> "Entry":
        """Of a Namespace."""
        return cls(ConfigType.NAMESPACE, name, uid=uid)

    @classmethod
    def workload(cls, namespace: str, kind: str, name: str, *, uid: str | None = None) -> "Entry":
        """Of a workload of this kind: `Deployment`, `StatefulSet` and the like."""
        return cls(ConfigType.WORKLOAD, name, namespace=namespace, workload_kind=kind, uid=uid)

    def get(self) -> wire.Operation:
        """Reads the entry: `{"key", "uid"?, "value"}`."""
        return self._operation(ConfigVerb.GET, None)

    def create(self, value: str) -> wire.Operation:
        """Writes the entry unless it exists; one that exists is success."""
        return self._operation(ConfigVerb.CREATE, value)

    def update(self, value: str) -> wire.Operation:
        """Writes the entry."""
        return self._operation(ConfigVerb.UPDATE, value)

    def delete(self) -> wire.Operation:
        """Deletes the entry and what hangs on it."""
        return self._operation(ConfigVerb.DELETE, None)

    def content(self, value: str, *, partition: str | None = None) -> wire.Content:
        """Describes an entry of a set, with this value. `partition`: as in `request`."""
        key = wire.ConfigKey_Resource(
            wire.ConfigResourceKey(self.config_type, self.name, self.uid, self.namespace, self.workload_kind)
        )
        return _content(key, value, partition)

    def _operation(self, verb: ConfigVerb, value: str | None) -> wire.Operation:
        return wire.Operation_ConfigResource(
            wire.ConfigResourceRequest(
                self.config_type,
                verb,
                self.name,
                self.uid,
                self.namespace,
                self.workload_kind,
                value,
            )
        )


class AppConf:
    """One key of the application configuration that belongs to a Pod and is deleted with its entry.

    The Pod's namespace is that of the object being handled, unless another is given.
    """

    __slots__ = ("key", "namespace", "pod")

    def __init__(self, pod: str, key: str, *, namespace: str | None = None) -> None:
        self.pod = pod
        self.key = key
        self.namespace = namespace

    def create(self, value: str) -> wire.Operation:
        """Writes the key unless it exists; one that exists is success."""
        return self._operation(ConfigAppConfVerb.CREATE, value)

    def update(self, value: str) -> wire.Operation:
        """Writes the key."""
        return self._operation(ConfigAppConfVerb.UPDATE, value)

    def delete(self) -> wire.Operation:
        """Deletes the key."""
        return self._operation(ConfigAppConfVerb.DELETE, None)

    def content(self, value: str, *, partition: str | None = None) -> wire.Content:
        """Describes an entry of a set, with this value. `partition`: as in `request`."""
        key = wire.ConfigKey_AppConf(wire.ConfigAppConfKey(self.pod, self.namespace, self.key))
        return _content(key, value, partition)

    def _operation(self, verb: ConfigAppConfVerb, value: str | None) -> wire.Operation:
        return wire.Operation_ConfigAppConf(wire.ConfigAppConfRequest(verb, self.pod, self.namespace, self.key, value))


class Basic:
    """A key by itself."""

    __slots__ = ("key",)

    def __init__(self, key: str) -> None:
        self.key = key

    def get(self) -> wire.Operation:
        """Reads the key: `{"key", "value"}`."""
        return self._operation(ConfigBasicVerb.GET, None)

    def put(self, value: str) -> wire.Operation:
        """Writes the key."""
        return self._operation(ConfigBasicVerb.PUT, value)

    def delete(self) -> wire.Operation:
        """Deletes the key."""
        return self._operation(ConfigBasicVerb.DELETE, None)

    def content(self, value: str, *, partition: str | None = None) -> wire.Content:
        """Describes an entry of a set, with this value. `partition`: as in `request`."""
        return _content(wire.ConfigKey_Basic(self.key), value, partition)

    def _operation(self, verb: ConfigBasicVerb, value: str | None) -> wire.Operation:
        return wire.Operation_ConfigBasic(wire.ConfigBasicRequest(verb, self.key, value))


class TwoLayers:
    """A leaf under two levels of path. The host creates and removes the levels."""

    __slots__ = ("second", "third")

    def __init__(self, second: str, third: str) -> None:
        self.second = second
        self.third = third

    def get(self) -> wire.Operation:
        """Reads the leaf: `{"key", "value"}`."""
        return self._operation(ConfigTwoLayersVerb.GET, None)

    def create(self, value: str) -> wire.Operation:
        """Writes the leaf unless it exists; one that exists is success."""
        return self._operation(ConfigTwoLayersVerb.CREATE, value)

    def update(self, value: str) -> wire.Operation:
        """Writes the leaf."""
        return self._operation(ConfigTwoLayersVerb.UPDATE, value)

    def delete(self) -> wire.Operation:
        """Deletes the leaf."""
        return self._operation(ConfigTwoLayersVerb.DELETE, None)

    def content(self, value: str, *, partition: str | None = None) -> wire.Content:
        """Describes an entry of a set, with this value. `partition`: as in `request`."""
        key = wire.ConfigKey_TwoLayers(wire.ConfigTwoLayersKey(self.second, self.third))
        return _content(key, value, partition)

    def _operation(self, verb: ConfigTwoLayersVerb, value: str | None) -> wire.Operation:
        return wire.Operation_ConfigTwoLayers(wire.ConfigTwoLayersRequest(verb, self.second, self.third, value))


def _content(key: wire.ConfigKey, value: str, partition: str | None) -> wire.Content:
    return wire.Content_Config(wire.ConfigContent(key, value, partition))


def transaction(*operations: wire.Operation) -> wire.Operation:
    """All of these operations of the config store, or none."""
    parts: list[wire.ConfigOperation] = []
    for operation in operations:
        if isinstance(operation, wire.Operation_ConfigResource):
            parts.append(wire.ConfigOperation_Resource(operation.value))
        elif isinstance(operation, wire.Operation_ConfigAppConf):
            parts.append(wire.ConfigOperation_AppConf(operation.value))
        elif isinstance(operation, wire.Operation_ConfigBasic):
            parts.append(wire.ConfigOperation_Basic(operation.value))
        elif isinstance(operation, wire.Operation_ConfigTwoLayers):
            parts.append(wire.ConfigOperation_TwoLayers(operation.value))
        else:
            raise TypeError(f"a transaction cannot have a {type(operation).__name__}")
    return wire.Operation_ConfigTransaction(wire.ConfigTransaction(parts))
