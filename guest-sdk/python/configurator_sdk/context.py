"""Facts about a call, and why it is made."""

from functools import cached_property
from typing import Any

from . import document, wire
from .document import Json
from .wire import ObjectKey

__all__ = ["Cause", "Context", "ObjectKey", "Signal"]


class Signal:
    """Something that a person or another program has told the run."""

    def __init__(self, signal: wire.Signal) -> None:
        self.name: str = signal.name
        """Its name."""
        self.data_json = None if signal.data is None else Json(signal.data)
        """What was told with it, as text, or `None`."""

    @property
    def data(self) -> Any:
        """What was told with it, or `None`."""
        return None if self.data_json is None else document.value(self.data_json)


class Cause:
    """Why a handler is called now."""

    def __init__(self, cause: wire.Cause) -> None:
        self.kind: str = _KINDS[type(cause)]
        """One of:

        - `entered`: the first call in this phase.
        - `retry`: a request of the previous call failed, or the call itself did.
        - `again`: the previous call ended with `Output.again`.
        - `timer`: the time named in `Output.wait` has come.
        - `signal`: it was told something.
        - `changed`: an object named in `Output.wait` has changed.
        - `recovered`: the host restarted or another took over: `Input.last` is what was stored, without results.
        """
        self.signal = Signal(cause.value) if isinstance(cause, wire.Cause_Signal) else None
        """Of the kind `signal`."""
        self.changed: ObjectKey | None = cause.value if isinstance(cause, wire.Cause_Changed) else None
        """Of the kind `changed`: the object."""


class Context:
    """Facts about a call. Nothing here changes while it runs."""

    def __init__(self, context: wire.Context) -> None:
        self._context = context
        self.configurator: str = context.configurator
        """The name of the Configurator."""
        self.phase: str = context.phase
        """The phase."""
        self.node: str = context.node
        """The path of the handler's node in the phase's tree: `install/prepare/create-pods`. The phase's name where there is no tree."""
        self.entry: int = context.entry
        """Counts from 1; `again` and the end of a `wait` add one, a retry does not."""
        self.attempt: int = context.attempt
        """Counts from 1 within an entry; a retry adds one."""
        self.now: str = context.now
        """When this entry began, as `2026-01-31T08:00:00.000Z`: the same on a retry."""
        self.seed: int = context.seed
        """Chance for the handler, of 64 bits: made of the run's id, node and entry, so the same on a retry."""
        self.run_id: str = context.run_id
        """Stable for one run of one object: usable in names that must not change on a retry."""

    @cached_property
    def cause(self) -> Cause:
        """Why the handler is called now."""
        return Cause(self._context.cause)

    @staticmethod
    def wire_of(parameters: Any = None, **facts: Any) -> wire.Context:
        """As the host gives it to a test. `facts` are fields; a `cause` is named by its kind, or one of the contract."""
        phase = facts.get("phase", "root")
        cause = facts.pop("cause", "entered")
        if isinstance(cause, str):
            cause = next(kind for kind, name in _KINDS.items() if name == cause)()
        every: dict[str, Any] = {
            "configurator": "test",
            "phase": phase,
            "node": phase,
            "entry": 1,
            "attempt": 1,
            "cause": cause,
            "now": "2026-01-01T00:00:00.000Z",
            "seed": 0,
            "parameters": document.text({} if parameters is None else parameters),
            "run_id": "run",
        }
        return wire.Context(**{**every, **facts})


_KINDS = {
    wire.Cause_Entered: "entered",
    wire.Cause_Retry: "retry",
    wire.Cause_Again: "again",
    wire.Cause_Timer: "timer",
    wire.Cause_Signal: "signal",
    wire.Cause_Changed: "changed",
    wire.Cause_Recovered: "recovered",
}
