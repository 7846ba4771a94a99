"""The write phase."""

from configurator_sdk import Accepts, HandlerError, Input, Output, Result, handler, request

from .deployment import Identity
from .root import ENTRIES, NAMESPACES, namespace_request
from .summary import summary

__all__ = ["write"]


@handler(
    "write",
    accepts=Accepts.BATCH,
    description="Writes the configuration of Deployments that has changed.",
)
def write(input: Input) -> Output:
    """Writes the entry of each Deployment of the batch whose summary is not what is stored.

    A Namespace that could not be read is an error, which a retry may cure: without it a Deployment would lose a layer.
    """
    annotations = {one.name: _annotations(one) for one in input.group_opt(NAMESPACES)}
    entries = {one.name: one for one in input.group_opt(ENTRIES)}
    output = Output()
    for watched in input.objects:
        deployment = watched.object
        identity = Identity(watched.metadata)
        inherited = annotations.get(namespace_request(identity.namespace))
        value = summary(deployment, inherited, identity.annotations)
        entry = entries.get(identity.request_name("entry"))
        if entry is None or _stored(entry) != value:
            update = identity.entry().update(value)
            name = identity.request_name("config")
            output.request(request(name, update, of=identity.object_ref()))
    return output


def _annotations(namespace: Result) -> dict[str, str] | None:
    found = namespace.found
    return None if found is None else found["metadata"].get("annotations")


def _stored(entry: Result) -> str | None:
    """The stored summary. Where it cannot be read it is written anew."""
    try:
        return str(entry.object["value"])
    except (HandlerError, KeyError):
        return None
