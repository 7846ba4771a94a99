"""What a handler left behind."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from . import document, wire
from .document import Json
from .errors import HandlerError
from .results import Result, Results, entries

__all__ = ["State"]


class State:
    """In a machine: what the previous entry of the same handler left behind."""

    def __init__(self, state: wire.HandlerState) -> None:
        self._state = state
        self.start_time: str | None = state.start_time
        """When it began."""
        self.end_time: str | None = state.end_time
        """When it ended."""
        self.done: bool = state.done
        """Whether its work is complete."""
        self.failed: bool = state.failed
        """Whether it failed."""
        self.fatal: bool = state.fatal
        """Whether that was fatal."""
        self.error = None if state.error is None else HandlerError.of_wire(state.error)
        """How it failed."""
        self.data_json = None if state.data is None else Json(state.data)
        """The handler's own notes as text, or `None`."""
        self.results = Results("the previous entry", state.request_results)
        """What became of its requests."""

    @cached_property
    def data(self) -> Any:
        """The handler's own notes, or `None`."""
        return None if self.data_json is None else document.value(self.data_json)

    @classmethod
    def of(
        cls,
        *results: Result,
        data: Any = None,
        error: HandlerError | None = None,
        groups: Mapping[str, Iterable[Result]] | None = None,
    ) -> "State":
        """For tests: as the host gives it to a handler that has left these notes, failed with this error, or asked for these results."""
        return cls(
            wire.HandlerState(
                None,
                None,
                False,
                error is not None,
                error is not None and error.fatal,
                None if error is None else error.to_wire(),
                None if data is None else document.text(data),
                entries(results, (groups or {}).items()),
            )
        )

    def to_wire(self) -> wire.HandlerState:
        """As the host gives it."""
        return self._state
