"""The phase of Deployments that are gone. It needs their names, namespaces and uids, and nothing else of them."""

from configurator_sdk import Accepts, Input, Output, handler, request

from .deployment import Identity

__all__ = ["cleanup"]


@handler(
    "cleanup",
    accepts=Accepts.BATCH,
    description="Deletes the configuration of Deployments that are gone.",
)
def cleanup(input: Input) -> Output:
    """Deletes the entry of each Deployment of the batch. That of a newer Deployment of the same name has another uid, and stays."""
    output = Output()
    for watched in input.objects:
        identity = Identity(watched.metadata)
        delete = identity.entry().delete()
        output.request(request(identity.request_name("config"), delete, of=identity.object_ref()))
    return output
