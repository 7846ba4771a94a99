"""Batches."""

from configurator_sdk import Accepts, Input, ObjectRef, Output, handler, request
from configurator_sdk.configstore import Entry


@handler("batch", accepts=Accepts.BATCH, description="Something for each object.")
def batch(input: Input) -> Output:
    """Of each object: a request, a status and an Event."""
    output = Output()
    for watched in input.objects:
        metadata = watched.object["metadata"]
        namespace, name = metadata["namespace"], metadata["name"]
        of = ObjectRef(namespace, name)
        event = watched.event.name.lower()
        entry = Entry.pod(namespace, name, uid=metadata["uid"])
        output.request(request(f"{namespace}/{name}", entry.update("1"), of=of))
        output.status({"seen": event}, of=of)
        output.event("Seen", f"{name} was {event}", of=of)
    return output


@handler("either", accepts=Accepts.EITHER, description="Counts objects.")
def either(input: Input) -> Output:
    return Output().pass_on("objects", len(input.objects))
