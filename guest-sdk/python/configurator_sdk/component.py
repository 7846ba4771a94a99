"""The module as the host calls it. `configurator build` makes it the component's entry."""

import gc
import random  # noqa: F401 - componentize-py would import it when all is prepared, and leave holes
from types import CodeType
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
    _note_lasting()
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


_LASTING: list[Any] = [None] * 131_072
# In capitals, so that it is not found where this source is.
_FRAME = b"configurator: what lasts".upper()
_NOTE = bytearray(2 * len(_FRAME) + 16)


def _note_lasting() -> None:
    """Leaves a note where all that is there lies. `configurator build` finds it and makes that immortal: to count how often an object is in
    use changes its page, and none of these will ever be thrown away.
    """
    # What is needed for a while lies behind what stays.
    seen: set[int] = set()
    count = 0
    rest = gc.get_objects()
    while rest and count < len(_LASTING):
        each = rest.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        _LASTING[count] = each
        count += 1
        rest += gc.get_referents(each)
        # The collector need not know of names, nor of what code refers to.
        if isinstance(each, dict):
            rest += each
        elif isinstance(each, CodeType):
            rest += (each.co_consts, each.co_names, each.co_filename, each.co_name, each.co_qualname)
    del _LASTING[count:]
    numbers = (count, id(_LASTING), id(_LASTING[0]), id(_LASTING[-1]))
    _NOTE[:] = b"".join([_FRAME, *(number.to_bytes(4, "little") for number in numbers), _FRAME])


_FILLING: list[Any] = [None] * 32_768
_BEYOND: list[Any] = [None] * 4_096


def _fill_holes() -> None:
    """Takes the memory that is free between what is kept, so that what a call makes lies together and changes few pages."""
    filling = beyond = end = 0
    # Of this size are hardly any holes, so the last of these lie at the end of all. They are given back.
    for filling in range(6):
        _FILLING[filling] = bytes(1 << 20)
        end = max(end, id(_FILLING[filling]))
    for index in range(filling, -1, -1):
        if id(_FILLING[index]) > end - (4 << 20):
            _FILLING[index], _BEYOND[beyond] = None, _FILLING[index]
            beyond += 1
    for size in (1 << 18, 1 << 16, 1 << 14, 1 << 12, 2048, 1024, *range(512, 0, -16), 8, 0):
        # Where block after block lies at the end of all, no hole of this size is left.
        ahead = 0
        while ahead < 8 and filling < len(_FILLING) - 1:
            block = bytes(size) if size else object()
            if id(block) > end:
                end = id(block)
                _BEYOND[beyond] = block
                beyond += 1
                ahead += 1
            else:
                filling += 1
                _FILLING[filling] = block
                ahead = 0
    del block
    for index in range(len(_BEYOND) - 1, -1, -1):
        _BEYOND[index] = None
