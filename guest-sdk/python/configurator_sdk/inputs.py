"""What a handler gets."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from . import document, wire
from .context import Context
from .document import Json
from .errors import HandlerError
from .outputs import Output
from .results import Result, Results, entries, missing
from .state import State
from .wire import WatchEvent

__all__ = ["Input", "WatchEvent", "WatchedObject"]


class WatchedObject:
    """An object of the run."""

    def __init__(self, watched: wire.WatchedObject) -> None:
        self.event: WatchEvent = watched.event
        """Why it is in the run. Several changes since the last run are one `MODIFIED`."""
        self.object_json = Json(watched.object)
        """The object as text, as it was watched."""

    @cached_property
    def object(self) -> Any:
        """The object."""
        return document.value(self.object_json)

    @cached_property
    def metadata(self) -> Any:
        """The object's metadata. Where nothing else of it matters this is quicker than `object`: what comes behind it is not parsed."""
        if "object" in self.__dict__:
            return self.object.get("metadata")
        return document.member(self.object_json, "metadata")


class Input:
    """What a handler decides on. The same input is to give the same output.

    Documents are parsed when they are first asked for; what ends in `_json` is their text, which can be handed on untouched.
    """

    def __init__(self, wired: wire.HandlerInput) -> None:
        self._wired = wired

    @cached_property
    def context(self) -> Context:
        """Facts about this call."""
        return Context(self._wired.context)

    @property
    def is_batch(self) -> bool:
        """Whether the run is of a batch."""
        return isinstance(self._wired.resource_object, wire.ResourceObject_Batch)

    @cached_property
    def objects(self) -> list[WatchedObject]:
        """All objects of the run: one, or those of the batch, which is never empty."""
        held = self._wired.resource_object
        watched = held.value if isinstance(held, wire.ResourceObject_Batch) else [held.value]
        return [WatchedObject(one) for one in watched]

    @property
    def object(self) -> Any:
        """The object. Of a batch, the first."""
        return self.objects[0].object

    @property
    def object_json(self) -> Json:
        """The object as text, as it was watched. Of a batch, the first."""
        return self.objects[0].object_json

    @property
    def metadata(self) -> Any:
        """The object's metadata, parsed alone where the object has not been asked for. Of a batch, that of the first."""
        return self.objects[0].metadata

    @property
    def event(self) -> WatchEvent:
        """Why the object is in the run. Of a batch, the first."""
        return self.objects[0].event

    @cached_property
    def parameters(self) -> Any:
        """The Configurator's `spec.parameters`, with those of the node laid over; an empty object where it has none."""
        return document.value(self.parameters_json)

    @property
    def parameters_json(self) -> Json:
        """The parameters as text."""
        return Json(self._wired.context.parameters)

    @cached_property
    def results(self) -> Results:
        """What became of the requests of the previous phase. Empty in the root phase."""
        return Results("the previous phase", self._wired.request_results)

    def result(self, name: str) -> Result:
        """The result of the request of this name. A fatal error where there is none; the message lists what there is.

        A request that failed and was dropped has no result: use `result_opt` for those.
        """
        return self.results.result(name)

    def result_opt(self, name: str) -> Result | None:
        """The result of the request of this name, or `None`."""
        return self.results.result_opt(name)

    def group(self, key: str) -> list[Result]:
        """The results of all requests with this `group_by`, in the order of the requests. A fatal error where there are none."""
        return self.results.group(key)

    def group_opt(self, key: str) -> list[Result]:
        """The results of all requests with this `group_by`; empty where no request had it."""
        return self.results.group_opt(key)

    @property
    def args(self) -> list[str]:
        """The keys of what the previous phase passed on. Empty in the root phase."""
        return [key for key, _ in self._wired.pass_through_args]

    def arg(self, key: str) -> Any:
        """What the previous phase passed on under this key. A fatal error where it did not."""
        found = self.arg_json(key)
        if found is None:
            known = self._wired.pass_through_args
            raise HandlerError(missing("the previous phase", "argument", key, known), fatal=True)
        return document.value(found)

    def arg_json(self, key: str) -> Json | None:
        """What the previous phase passed on under this key, as text, or `None`."""
        return _find(self._wired.pass_through_args, key)

    @cached_property
    def last(self) -> State | None:
        """In a machine: what the previous entry of this handler left behind, where it is entered again."""
        return None if self._wired.last is None else State(self._wired.last)

    def answer(self, name: str) -> Result | None:
        """In a machine: the result of the request of this name that the entry before asked for.

        `None` on the first entry, where the request was not asked for, and where the host does not remember: then ask again.
        """
        return None if self.last is None else self.last.results.result_opt(name)

    def answers(self, key: str) -> list[Result]:
        """In a machine: the results of all requests with this `group_by` that the entry before asked for; empty where `answer` is `None`."""
        return [] if self.last is None else self.last.results.group_opt(key)

    @property
    def notes(self) -> Any:
        """In a machine: what this handler has noted with `Output.data`, or `None`."""
        return None if self.last is None else self.last.data

    @property
    def outputs(self) -> list[str]:
        """In a machine: the paths of the steps that have left an output."""
        return [path for path, _ in self._wired.outputs]

    def output_of(self, path: str) -> Any:
        """In a machine: what the step at this path has left with `Output.output`. A fatal error where it has not.

        The path is that within the flow; outside a flow it begins with the phase.
        """
        found = self.output_json(path)
        if found is None:
            known = self._wired.outputs
            raise HandlerError(missing("earlier steps", "output", path, known), fatal=True)
        return document.value(found)

    def output_json(self, path: str) -> Json | None:
        """In a machine: what the step at this path has left, as text, or `None`."""
        return _find(self._wired.outputs, path)

    @property
    def plan(self) -> wire.Plan | None:
        """In a pipeline: the plan of the handlers before this one, and of this one. Elsewhere `None`.

        Its requests and entries are as the host sends them, and can be put back into an output: whole, or changed with `dataclasses.replace`.
        The object of an entry is text, `entry.content.value`, which `document.value` reads and `kubernetes.content` makes.
        """
        return self._wired.plan

    @classmethod
    def of(
        cls,
        *objects: Any,
        batch: bool = False,
        event: WatchEvent = WatchEvent.MODIFIED,
        parameters: Any = None,
        results: Iterable[Result] = (),
        groups: Mapping[str, Iterable[Result]] | None = None,
        args: Mapping[str, Any] | None = None,
        args_of: Output | None = None,
        last: State | None = None,
        outputs: Mapping[str, Any] | None = None,
        plan_of: Output | None = None,
        **facts: Any,
    ) -> "Input":
        """An input for a test: of one object, or of a `batch` of all of them.

        Without more it is the root phase of `{}`, first entry, first attempt, at the start of 2026. `args_of` is the output of the phase
        before, whose arguments are passed on; `plan_of` is an output whose requests and set are the plan; `facts` are fields of `Context`.
        """
        watched = [wire.WatchedObject(document.text(one), event) for one in objects or ({},)]
        passed = [(key, document.text(one)) for key, one in (args or {}).items()]
        if args_of is not None:
            passed += args_of.to_wire().pass_through_args
        planned = None if plan_of is None else plan_of.to_wire()
        return cls(
            wire.HandlerInput(
                wire.ResourceObject_Batch(watched) if batch else wire.ResourceObject_One(watched[0]),
                entries(results, (groups or {}).items()),
                passed,
                None if last is None else last.to_wire(),
                [(path, document.text(one)) for path, one in (outputs or {}).items()],
                None if planned is None else wire.Plan(planned.requests, planned.desired),
                Context.wire_of(parameters, **facts),
            )
        )


def _find(documents: list[tuple[str, str]], key: str) -> Json | None:
    return next((Json(text) for known, text in documents if known == key), None)
