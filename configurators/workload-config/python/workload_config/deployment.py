"""The parts of a Deployment that matter here."""

from typing import Any

from configurator_sdk import HandlerError, ObjectRef
from configurator_sdk.configstore import Entry

__all__ = ["Identity", "needed"]


def needed(document: Any, name: str) -> Any:
    """A field that every object of the API has. A fatal error where it does not: no retry brings it."""
    try:
        return document[name]
    except (KeyError, TypeError):
        raise HandlerError(f"the object has no `{name}`", fatal=True) from None


class Identity:
    """What the metadata of every object has, also of one of which only the identity is known."""

    def __init__(self, metadata: Any) -> None:
        self.name: str = needed(metadata, "name")
        self.namespace: str = needed(metadata, "namespace")
        self.uid: str = needed(metadata, "uid")
        self.annotations: dict[str, str] | None = metadata.get("annotations")

    def object_ref(self) -> ObjectRef:
        """The object, as requests name it."""
        return ObjectRef(self.namespace, self.name)

    def entry(self) -> Entry:
        """Its entry in the config store."""
        return Entry.workload(self.namespace, "Deployment", self.name, uid=self.uid)

    def request_name(self, what: str) -> str:
        """The name of a request about it: no two of a batch share one, because no two objects share namespace and name."""
        return f"{what}/{self.namespace}/{self.name}"
