"""The module as the host calls it. `configurator build` makes it the component's entry."""

import gc
from typing import Any

from componentize_py_types import Err  # type: ignore[import-not-found]

from . import handlers, wire
from .configstore import Entry
from .errors import HandlerError
from .inputs import Input
from .kubernetes import CONFIG_MAP
from .outputs import Output
from .requests import ObjectRef, OnError, request

__all__ = ["Handler", "prepare"]


class Handler:
    """What the contract has modules export."""

    def describe(self) -> wire.ModuleDescription:
        """What the module has."""
        return handlers.describe()

    def handle(self, handler: str, input: wire.HandlerInput) -> wire.HandlerOutput:
        """Calls a handler."""
        try:
            return handlers.call(handler, Input(input)).to_wire()
        except HandlerError as error:
            raise Err(error.to_wire()) from error


def prepare() -> None:
    """Makes each call quick, when the module is built and everything is imported.

    Every instance of the module begins with the memory that is left here, and pays for each page of it that it changes.
    """
    # Python specialises what has run some times.
    for _ in range(16):
        _run_through()
    # What is there now is never garbage. An instance seldom lives long enough to collect any.
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000)
    _fill_holes()


def _run_through() -> None:
    """What a usual handler does, and the host with it."""
    object = {"metadata": {"namespace": "shop", "name": "web", "uid": "6e2d", "annotations": {"a": "é"}}}
    input = Input.of(object, event=wire.WatchEvent(1))
    metadata = input.object["metadata"]
    namespace, name = metadata["namespace"], metadata["name"]
    of = ObjectRef(namespace, name)
    entry = Entry.pod(namespace, name, uid=metadata["uid"])
    read = CONFIG_MAP.get(namespace, name, cached=True)
    output = Output(request("map", read, on_error=OnError.CATCH_ERROR))
    if input.result_opt(input.context.phase) is None and not input.group_opt("entries"):
        output.request(request("apply", CONFIG_MAP.apply(namespace, name, object)))
        output.request(request("entry", entry.get(), group_by="entries", of=of))
        output.request(request("write", entry.update(name), of=of))
    output.pass_on("uid", input.object_json).status(metadata).event(name, namespace).to_wire()


_FILLING: list[Any] = [None] * 32_768


def _fill_holes() -> None:
    """Takes the memory that is free between what is kept, so that what a call makes lies together and changes few pages."""
    count = 0
    for size in (8192, 4096, 2048, 1024, *range(512, 0, -16), 1):
        # Where block after block lies beyond all others, no hole of this size is left.
        end = beyond = 0
        while beyond < 16 and count < len(_FILLING):
            block = bytes(size) if size > 1 else [None]
            _FILLING[count] = block
            count += 1
            beyond = beyond + 1 if id(block) > end else 0
            end = max(end, id(block))
    # Space at the end that a call need not ask for.
    del block
    bytearray(1 << 20)
