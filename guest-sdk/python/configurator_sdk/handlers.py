"""The handlers of a module."""

import traceback
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from . import document, log, wire
from .errors import HandlerError
from .inputs import Input
from .outputs import Output
from .wire import Accepts, View

__all__ = ["Accepts", "View", "call", "describe", "handler"]

Run = Callable[[Input], Output]
Decorated = TypeVar("Decorated", bound=Run)


class _Handler(NamedTuple):
    run: Run
    description: wire.HandlerDescription


_HANDLERS: dict[str, _Handler] = {}


def handler(
    name: str,
    *,
    description: str = "",
    view: View = View.NONE,
    accepts: Accepts = Accepts.ONE,
    parameters_schema: Any = None,
    capabilities: Any = None,
) -> Callable[[Decorated], Decorated]:
    """Makes a function the handler of this name. The function stays as it is, and can be called by tests.

    - `description`: one sentence for `configurator inspect`.
    - `view`: how a person sees its progress, in a machine.
    - `accepts`: whether it takes one object, a batch, or both.
    - `parameters_schema`: the JSON Schema that the Configurator's `spec.parameters` must meet. `configurator inspect` shows it; the host
      does not hold the parameters to it, so the handler has to.
    - `capabilities`: what it may ask for at most, in the form of the Configurator's `spec.capabilities`. A host does not run the module
      where a Configurator grants less. Without it nothing is said.
    """

    def register(run: Decorated) -> Decorated:
        if not name:
            raise ValueError("a handler needs a name")
        if name in _HANDLERS:
            raise ValueError(f"two handlers have the name {name!r}")
        schema = None if parameters_schema is None else document.text(parameters_schema)
        limits = None if capabilities is None else document.text(capabilities)
        described = wire.HandlerDescription(name, description, view, accepts, schema, limits)
        _HANDLERS[name] = _Handler(run, described)
        return run

    return register


def describe() -> wire.ModuleDescription:
    """The handlers, in the order of declaration."""
    return wire.ModuleDescription([one.description for one in _HANDLERS.values()])


def call(name: str, input: Input) -> Output:
    """Calls the handler of this name as the host does: whatever it raises is a `HandlerError`."""
    found = _HANDLERS.get(name)
    if found is None:
        known = ", ".join(_HANDLERS)
        raise HandlerError(f"this module has no handler `{name}`; it has: {known}", fatal=True)
    accepts = found.description.accepts
    if accepts == Accepts.ONE and input.is_batch:
        message = f"handler `{name}` takes one object, and got a batch: remove `chain.batch` from the Configurator"
        raise HandlerError(message, fatal=True)
    if accepts == Accepts.BATCH and not input.is_batch:
        message = f"handler `{name}` takes a batch, and got one object: add `chain.batch` to the Configurator"
        raise HandlerError(message, fatal=True)
    try:
        output = found.run(input)
        if not isinstance(output, Output):
            raise TypeError(f"handler `{name}` returned {type(output).__name__}, not an Output")
        return output
    except HandlerError:
        raise
    except Exception as error:
        log.error(traceback.format_exc())
        raise HandlerError(f"{type(error).__name__}: {error}") from error
