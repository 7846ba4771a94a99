"""Requests to sinks that the embedder of the host adds.

    address = Extension("dns").request_with("upsert", "example.org/www", {"a": "192.0.2.1"})
    output = Output(request("address", address))
"""

from typing import Any

from . import document, wire

__all__ = ["Extension"]


class Extension:
    """An extension by its name. A host without it refuses its requests with `UNSUPPORTED_RESOURCE_OPERATION`."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def request(self, verb: str, target: str) -> wire.Operation:
        """Does what the verb of the extension says to this target."""
        return self._operation(verb, target, None)

    def request_with(self, verb: str, target: str, body: Any) -> wire.Operation:
        """Does what the verb says to this target, with a body."""
        return self._operation(verb, target, document.text(body))

    def _operation(self, verb: str, target: str, body: str | None) -> wire.Operation:
        return wire.Operation_Extension(wire.ExtensionRequest(self.name, verb, target, body))
