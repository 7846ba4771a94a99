"""The root phase."""

from configurator_sdk import Accepts, Input, Output, handler, request
from configurator_sdk.kubernetes import NAMESPACE

from .deployment import Identity

__all__ = ["ENTRIES", "NAMESPACES", "namespace_request", "root"]

NAMESPACES = "namespaces"
"""The key under which the Namespaces arrive together, each once."""
ENTRIES = "entries"
"""The key under which the stored entries arrive together, one for each Deployment."""


def namespace_request(name: str) -> str:
    """The name of the request for a Namespace."""
    return f"namespace/{name}"


@handler(
    "root",
    accepts=Accepts.BATCH,
    description="Asks for the Namespaces and stored configuration of Deployments.",
)
def root(input: Input) -> Output:
    """Asks for each Namespace of the batch once, and for the entry of each Deployment.

    Failures join their groups. An entry that is absent is the ordinary case of a new Deployment.
    """
    identities = [Identity(watched.metadata) for watched in input.objects]
    output = Output()
    for name in sorted({identity.namespace for identity in identities}):
        get = NAMESPACE.get("", name, cached=True)
        output.request(request(namespace_request(name), get, group_by=NAMESPACES))
    for identity in identities:
        get = identity.entry().get()
        name = identity.request_name("entry")
        output.request(request(name, get, group_by=ENTRIES, of=identity.object_ref()))
    return output
