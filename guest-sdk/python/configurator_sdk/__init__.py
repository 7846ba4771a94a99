"""Write configurator handlers in Python.

A handler is a plain function. It reads an `Input`, decides, and returns an `Output`: requests that the host carries out, and arguments for
the next phase. It talks to no server, reads no clock and keeps nothing.

    from configurator_sdk import Input, Output, handler, request
    from configurator_sdk.kubernetes import CONFIG_MAP


    @handler("root", description="Gives every Namespace a ConfigMap.")
    def root(input: Input) -> Output:
        name = input.object["metadata"]["name"]
        about = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"namespace": name, "name": "about"},
            "data": {"namespace": name},
        }
        return Output(request("about", CONFIG_MAP.apply(name, "about", about)))

A test calls it like any function:

    root(Input.of({"metadata": {"name": "shop"}}))

What a handler gets: `Input`, `Result`. What it returns: `Output`, `request`, `HandlerError`. What it may ask for: `kubernetes`,
`configstore`, `secretstore`, `http`, `extension`, and a `desired_set`. What makes it part of a module: `handler`.
"""

from . import configstore, document, extension, http, kubernetes, log, secretstore, wire
from .context import Cause, Context, ObjectKey, Signal
from .desired import (
    OnConflict,
    OnDelete,
    OnExisting,
    OnImmutable,
    TerminationPolicy,
    desired_entry,
    desired_set,
)
from .document import Json
from .errors import HandlerError
from .handlers import Accepts, View, call, handler
from .inputs import Input, WatchedObject, WatchEvent
from .outputs import BatchErrorStrategy, EventType, Output
from .requests import ObjectRef, OnError, Readiness, request
from .results import ErrorKind, HttpResponse, RequestError, RequestSink, Result, Results
from .state import State

__version__ = "0.1.0"

__all__ = [
    "Accepts",
    "BatchErrorStrategy",
    "Cause",
    "Context",
    "ErrorKind",
    "EventType",
    "HandlerError",
    "HttpResponse",
    "Input",
    "Json",
    "ObjectKey",
    "ObjectRef",
    "OnConflict",
    "OnDelete",
    "OnError",
    "OnExisting",
    "OnImmutable",
    "Output",
    "Readiness",
    "RequestError",
    "RequestSink",
    "Result",
    "Results",
    "Signal",
    "State",
    "TerminationPolicy",
    "View",
    "WatchEvent",
    "WatchedObject",
    "call",
    "configstore",
    "desired_entry",
    "desired_set",
    "document",
    "extension",
    "handler",
    "http",
    "kubernetes",
    "log",
    "request",
    "secretstore",
    "wire",
]
