"""Sets: all that an owner is to have.

    password = desired_entry("password", Secret("shop-db").content(), on_delete=OnDelete.RETAIN)
    database = desired_entry("database", stateful_set, depends_on=["password"])
    output = Output().desired(desired_set(password, database))
"""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from . import kubernetes, wire
from .errors import milliseconds
from .wire import OnConflict, OnDelete, OnExisting, OnImmutable, TerminationPolicy

__all__ = [
    "OnConflict",
    "OnDelete",
    "OnExisting",
    "OnImmutable",
    "TerminationPolicy",
    "desired_entry",
    "desired_set",
]


def desired_entry(
    name: str,
    content: Any,
    *,
    depends_on: Iterable[str] = (),
    ready_when: wire.Readiness | None = None,
    failed_when: str | None = None,
    timeout: timedelta | None = None,
    on_existing: OnExisting | None = None,
    on_conflict: OnConflict | None = None,
    on_immutable: OnImmutable | None = None,
    ignored_paths: Iterable[str] = (),
    on_delete: OnDelete | None = None,
) -> wire.DesiredEntry:
    """One member that the owner is to have. No two entries and requests of one output share a name.

    - `content`: a Kubernetes object, or made by `content` of a `Secret` or of a key of the config store.
    - `depends_on`: names of entries that must be ready first.
    - `ready_when`: when the entry is ready. By default `Readiness.HEALTHY` for a Kubernetes object, `Readiness.EXISTS` for all else.
    - `failed_when`: a CEL expression over `object`. The entry has failed while it is true.
    - `timeout`: how long the entry may take to be ready after it was written, or after it was ready last. By default there is no limit.
    - `on_existing`: the policy for a member that exists and belongs to no set. By default `OnExisting.REFUSE`.
    - `on_conflict`: the policy for a field that another field manager has. By default `OnConflict.FAIL`.
    - `on_immutable`: the policy for a change of an immutable field. By default `OnImmutable.FAIL`.
    - `ignored_paths`: fields that the host leaves alone once the object exists: `.spec.replicas`.
    - `on_delete`: the policy for the member when the owner is deleted. By default `OnDelete.WITH_OWNER`.
    """
    return wire.DesiredEntry(
        name,
        content if isinstance(content, _CONTENTS) else kubernetes.content(content),
        list(depends_on),
        ready_when,
        failed_when,
        milliseconds(timeout),
        on_existing,
        on_conflict,
        on_immutable,
        list(ignored_paths),
        on_delete,
    )


def desired_set(
    *entries: wire.DesiredEntry,
    allow_empty: bool = False,
    termination_policy: TerminationPolicy | None = None,
    termination_policy_at: str | None = None,
    provision: Iterable[list[str]] = (),
    update: Iterable[list[str]] = (),
    terminate: Iterable[list[str]] = (),
    pre_terminate: Iterable[wire.ResourceRequest] = (),
) -> wire.DesiredSet:
    """All that an owner is to have, for `Output.desired`. The host deletes what an earlier set had and this one lacks.

    - `entries`: in any order. Those of `Input.plan` can be put back.
    - `allow_empty`: deletes all members if there are no entries. Without it, a set without entries is an error.
    - `termination_policy`: the policy for the members when the owner is deleted. By default `TerminationPolicy.DELETE`.
    - `termination_policy_at`: the path of the owner that has the policy, such as `.spec.terminationPolicy`. The host reads it when the owner
      is deleted.
    - `provision`, `update`: the orders of creation and of updates, where they differ from `depends_on`: groups of names, each after the one
      before it. An order replaces the dependencies between the entries that it names.
    - `terminate`: the order of deletion. The first group is deleted first.
    - `pre_terminate`: requests that are executed when the owner is being deleted, before any member is. Each waits for what it names in
      `depends_on`.
    """
    if termination_policy is not None and termination_policy_at is not None:
        raise ValueError("a set has either a termination policy or the path of one")
    termination: wire.Termination | None = None
    if termination_policy is not None:
        termination = wire.Termination_Policy(termination_policy)
    elif termination_policy_at is not None:
        termination = wire.Termination_Path(termination_policy_at)
    orders = wire.Orders(list(provision), list(update), list(terminate))
    has_orders = orders.provision or orders.update or orders.terminate
    return wire.DesiredSet(
        list(entries),
        allow_empty,
        termination,
        orders if has_orders else None,
        list(pre_terminate),
    )


_CONTENTS = (wire.Content_Kubernetes, wire.Content_Config, wire.Content_Secret)
