"""What a handler returns."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from . import document, wire
from .errors import HandlerError, milliseconds
from .wire import BatchErrorStrategy, EventType, ExecuteStrategy, ObjectKey, ObjectRef

__all__ = ["BatchErrorStrategy", "EventType", "Output"]


class Output:
    """Requests, and what goes with them. Each method returns the output itself, so that they can follow one another.

    What a host refuses does nothing at all, and the run fails. In a chain it refuses `again`, `wait` and `next_phase`; in a machine
    the `desired` of a node with `once`, and of all but one of several nodes side by side; today, in chains and machines, `stop`, and
    outside of a pipeline `remove_from_plan` and `read`. In a chain `data`, `output`, `details` and `progress` are left unread.
    """

    def __init__(self, *requests: wire.ResourceRequest) -> None:
        self.requests: list[wire.ResourceRequest] = list(requests)
        """What the host is to do. Names are used once in an output, and none equals a `group_by`."""
        self._wire = wire.HandlerOutput(
            wire.Requests(None, self.requests, None),
            [],
            wire.Outcome_Done(),
            None,
            [],
            None,
            [],
            None,
            None,
            None,
            None,
            [],
            [],
        )

    def request(self, *requests: wire.ResourceRequest) -> "Output":
        """Adds requests."""
        self.requests.extend(requests)
        return self

    def serial(self) -> "Output":
        """Requests are sent in order, and the first failure that nothing catches stops the rest."""
        self._wire.requests.execute_strategy = ExecuteStrategy.SERIAL
        return self

    def parallel(self) -> "Output":
        """Requests are sent side by side. The default."""
        self._wire.requests.execute_strategy = ExecuteStrategy.PARALLEL
        return self

    def graph(self) -> "Output":
        """Each request is sent when those that it depends on are ready."""
        self._wire.requests.execute_strategy = ExecuteStrategy.GRAPH
        return self

    def batch_error_strategy(self, strategy: BatchErrorStrategy) -> "Output":
        """What becomes of failed requests that have a `group_by` and no `on_error`. By default they are caught."""
        self._wire.requests.batch_error_strategy = strategy
        return self

    def pass_on(self, key: str, value: Any) -> "Output":
        """Hands a document to the next phase, which reads it with `Input.arg`."""
        self._wire.pass_through_args.append((key, document.text(value)))
        return self

    def status(self, status: Any, *, of: ObjectRef | None = None) -> "Output":
        """Merges this into the object's status by server-side apply, at the end of the run. In a batch, `of` names the object."""
        self._wire.statuses.append(wire.StatusUpdate(of, document.text(status)))
        return self

    def event(
        self,
        reason: str,
        message: str,
        *,
        type: EventType = EventType.NORMAL,
        of: ObjectRef | None = None,
    ) -> "Output":
        """A Kubernetes Event about the object, once the requests of this phase have gone through. In a batch, `of` names the object."""
        self._wire.events.append(wire.Event(of, type, reason, message))
        return self

    def data(self, data: Any) -> "Output":
        """The handler's own notes, which come back as `Input.notes` when it is entered again."""
        self._wire.data = document.text(data)
        return self

    def output(self, output: Any) -> "Output":
        """For later steps of the same flow, which read it with `Input.output_of`."""
        self._wire.output = document.text(output)
        return self

    def details(self, details: Any) -> "Output":
        """What a person sees under the view `OBJECT_DETAIL`."""
        self._wire.details = document.text(details)
        return self

    def progress(self, percent: int, message: str) -> "Output":
        """How far the handler is: 0 to 100 percent."""
        self._wire.progress = wire.Progress(max(0, min(100, percent)), message)
        return self

    def again(self, after: timedelta | None = None) -> "Output":
        """In a machine: enter this handler again with the requests' results, at once or after this long."""
        self._wire.outcome = wire.Outcome_Again(milliseconds(after))
        return self

    def wait(
        self,
        *,
        after: timedelta | None = None,
        signals: Iterable[str] = (),
        objects: Iterable[ObjectKey] = (),
    ) -> "Output":
        """In a machine: leave memory, and enter this handler again at the first of these."""
        self._wire.outcome = wire.Outcome_Wait(wire.Wake(milliseconds(after), list(signals), list(objects)))
        return self

    def failed(self, error: HandlerError) -> "Output":
        """As raising the error, but statuses, events, data and progress are kept. Requests and reads are dropped: the contract allows none here."""
        self.requests.clear()
        self._wire.reads.clear()
        self._wire.outcome = wire.Outcome_Failed(error.to_wire())
        return self

    def stop(self) -> "Output":
        """In a pipeline: the handlers after this one are not called."""
        self._wire.outcome = wire.Outcome_Stop()
        return self

    def next_phase(self, phase: str) -> "Output":
        """In a machine: go to this phase, whatever the transitions say."""
        self._wire.next = phase
        return self

    def desired(self, desired: wire.DesiredSet) -> "Output":
        """Sets all that the owner is to have; the host deletes what is missing here. In a pipeline, its entries join the plan.

        Takes a `desired_set`, or the set of `Input.plan`.
        """
        self._wire.desired = desired
        return self

    def remove_from_plan(self, *names: str) -> "Output":
        """In a pipeline: removes from the plan the requests and entries of these names."""
        self._wire.remove_from_plan.extend(names)
        return self

    def read(self, *requests: wire.ResourceRequest) -> "Output":
        """In a pipeline: adds requests that only read, and enters this handler again with their results, by `Input.answer`."""
        self._wire.reads.extend(requests)
        return self.again()

    def to_wire(self) -> wire.HandlerOutput:
        """As the host takes it: every field, for tests."""
        return self._wire
