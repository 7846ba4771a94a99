"""Requests to the secret store."""

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

    def delete(self) -> wire.Operation:
        """Deletes the secret. One that is absent is success."""
        return self._operation(SecretVerb.DELETE, None)

    def _operation(self, verb: SecretVerb, value: str | None) -> wire.Operation:
        return wire.Operation_Secret(wire.SecretRequest(self.name, verb, value))
