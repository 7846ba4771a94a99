"""Requests to the secret store, and secrets as entries of a set."""

from typing import Any

from . import document, wire
from .wire import SecretVerb

__all__ = ["Secret"]


class Secret:
    """A secret by its name."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def get(self) -> wire.Operation:
        """Reads the secret: `{"name", "version", "value"}`.

        Keep the value out of log lines, Events and statuses; the host redacts it there as a second line of defence.
        """
        return self._operation(SecretVerb.GET, None)

    def create(self) -> wire.Operation:
        """Creates the secret with a value that the host generates; one that exists is success."""
        return self._operation(SecretVerb.CREATE, None)

    def create_with(self, value: Any) -> wire.Operation:
        """Creates the secret with this value; one that exists is success and keeps its value."""
        return self._operation(SecretVerb.CREATE, document.text(value))

    def update(self, version: int) -> wire.Operation:
        """Writes a value that the host generates in the place of this version; 0 stands for a secret that is absent.

        Another version is a conflict.
        """
        return self._operation(SecretVerb.UPDATE, None, version)

    def update_with(self, version: int, value: Any) -> wire.Operation:
        """Writes this value in the place of this version; 0 stands for a secret that is absent.

        Another version is a conflict, unless it has the value already.
        """
        return self._operation(SecretVerb.UPDATE, document.text(value), version)

    def delete(self) -> wire.Operation:
        """Deletes the secret. One that is absent is success."""
        return self._operation(SecretVerb.DELETE, None)

    def content(self, *, partition: str | None = None) -> wire.Content:
        """Describes an entry of a set, with a value that the host generates once. `partition`: as in `request`."""
        return wire.Content_Secret(wire.SecretContent(self.name, None, partition))

    def content_with(self, value: Any, *, partition: str | None = None) -> wire.Content:
        """Describes an entry of a set, with this value. `partition`: as in `request`."""
        return wire.Content_Secret(wire.SecretContent(self.name, document.text(value), partition))

    def _operation(self, verb: SecretVerb, value: str | None, version: int | None = None) -> wire.Operation:
        return wire.Operation_Secret(wire.SecretRequest(self.name, verb, value, version))
