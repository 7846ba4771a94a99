"""What every SDK must be able to say and read, as the module in Rust beside this one says it."""

# The order of these is the order in which the module lists its handlers.
from . import kubernetes, stores, requests, documents, reading, outcomes, sets, runtime, batch  # noqa: F401
