"""How a call ends, and what it says beside its requests."""

import random
import time
from collections.abc import Iterator
from datetime import timedelta

from configurator_sdk import (
    EventType,
    HandlerError,
    Input,
    Output,
    Readiness,
    View,
    desired_object,
    handler,
    log,
    request,
)
from configurator_sdk.configstore import Basic
from configurator_sdk.kubernetes import CONFIG_MAP, POD

from .parameter import parameter


@handler("statuses", description="Statuses and Events.")
def statuses(input: Input) -> Output:
    return (
        Output()
        .status({"ready": True})
        .status({"count": 3})
        .event("Configured", "all is well")
        .event("Slow", "it took long", type=EventType.WARNING)
    )


@handler("error", description="Errors of all kinds.", parameters_schema={"type": "object"})
def error(input: Input) -> Output:
    match parameter(input, "error"):
        case "after":
            raise HandlerError("no quota", retry_after=timedelta(seconds=30))
        case "code":
            raise HandlerError("no quota", code="QUOTA")
        case "fatal":
            raise HandlerError("no such class", fatal=True)
    raise HandlerError("no quota")


@handler("panic", description="Fails as no handler should.")
def panic(input: Input) -> Output:
    raise RuntimeError("the sky is falling")


@handler("outcome", description="Every way to end.", view=View.OBJECT_DETAIL)
def outcome(input: Input) -> Output:
    output = Output()
    match parameter(input, "outcome"):
        case "again":
            return output.again()
        case "again-after":
            return output.again(timedelta(seconds=5))
        case "wait":
            objects = [POD.key("shop", "web"), CONFIG_MAP.key("shop", "a")]
            return output.wait(after=timedelta(minutes=1), signals=["go", "stop"], objects=objects)
        case "wait-forever":
            return output.wait()
        case "failed":
            return (
                output.status({"ready": False})
                .event("Failed", "no quota", type=EventType.WARNING)
                .data([1])
                .progress(10, "begun")
                .failed(HandlerError("no quota", code="QUOTA"))
            )
        case "next":
            return output.next_phase("Running")
        case "stop":
            return output.request(request("one", Basic("key").get())).stop()
    return output


@handler("desired", description="All objects of an owner.")
def desired(input: Input) -> Output:
    def object(name: str) -> dict:
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "shop", "name": name}}

    return Output().desired(
        desired_object("a", object("a")),
        desired_object("b", object("b"), depends_on=["a"], ready_when=Readiness.EXISTS, retain=True),
        allow_empty=True,
    )


@handler("log", description="Logs at every level.")
def lines(input: Input) -> Output:
    log.trace("one")
    log.debug("two")
    log.info("three")
    log.warn("four")
    log.error("fünf")
    log.info("six", b=2, a=1)
    return Output()


@handler("clock", description="The language's clock.")
def clock(input: Input) -> Output:
    return Output().pass_on("milliseconds", time.time_ns() // 1_000_000)


@handler("chance", description="Numbers made of the seed.")
def chance(input: Input) -> Output:
    """Three numbers that splitmix64 makes of the seed, as texts."""
    numbers = splitmix(input.context.seed)
    return Output().pass_on("numbers", [str(next(numbers)) for _ in range(3)])


@handler("random", description="A number by the language's generator.")
def generator(input: Input) -> Output:
    return Output().pass_on("number", str(random.getrandbits(64)))


def splitmix(state: int) -> Iterator[int]:
    mask = 2**64 - 1
    while True:
        state = (state + 0x9E37_79B9_7F4A_7C15) & mask
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58_476D_1CE4_E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D0_49BB_1331_11EB) & mask
        yield z ^ (z >> 31)
