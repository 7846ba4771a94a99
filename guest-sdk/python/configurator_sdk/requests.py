"""Requests: what a handler asks for."""

from collections.abc import Iterable
from datetime import timedelta

from . import wire
from .errors import milliseconds
from .wire import ObjectRef, OnError

__all__ = ["ObjectRef", "OnError", "Readiness", "request"]


class Readiness:
    """Conditions of a request or an entry, for what depends on it to go on."""

    EXISTS: wire.Readiness = wire.Readiness_Exists()
    """It exists."""

    OBSERVED: wire.Readiness = wire.Readiness_Observed()
    """It exists, and `status.observedGeneration`, where present, is its generation. The default of a request."""

    HEALTHY: wire.Readiness = wire.Readiness_Healthy()
    """It is observed, and healthy by the rules of its kind: a Deployment has its replicas, a Job is complete, a volume claim is bound."""

    @staticmethod
    def expression(cel: str) -> wire.Readiness:
        """This CEL expression over `object` is true."""
        return wire.Readiness_Expression(cel)


def request(
    name: str,
    operation: wire.Operation,
    *,
    declarative: bool = False,
    group_by: str | None = None,
    bootstrap_dep: bool = False,
    of: ObjectRef | None = None,
    on_error: OnError | None = None,
    depends_on: Iterable[str] = (),
    ready_when: wire.Readiness | None = None,
    once: bool = False,
    timeout: timedelta | None = None,
    partition: str | None = None,
) -> wire.ResourceRequest:
    """A request of this name, which its result has as well. No two requests of one output share a name.

    - `declarative`: the phase does not wait for it, and the host retries it by itself until a later one for the same target takes its
      place. Only for requests that change something.
    - `group_by`: the results of all requests with this key arrive together.
    - `bootstrap_dep`: the host is not ready until it has succeeded for every object that existed at start.
    - `of`: in a batch, the object that it is for: a failure is charged to it alone.
    - `on_error`: what becomes of its failure. By default the phase fails; with `group_by`, what the output says. An outage of a server is
      neither caught nor dropped: the run waits.
    - `depends_on`, `ready_when`: only with `Output.graph`, and in `pre_terminate` of a `desired_set`.
    - `once`: never sent a second time, even where the answer was lost. Refused in a chain.
    - `timeout`: how long one attempt may take. By default the sink's, which is 30 s.
    - `partition`: the namespace whose partition of the config store or the secret store is meant. A Configurator may name its own namespace
      only, a ClusterConfigurator those that a rule of its capabilities names. By default the Configurator's own partition.
    """
    return wire.ResourceRequest(
        name,
        declarative,
        group_by,
        bootstrap_dep,
        of,
        on_error,
        list(depends_on),
        ready_when,
        once,
        milliseconds(timeout),
        partition,
        operation,
    )
