"""How a call ends, and what it says beside its requests."""

from datetime import timedelta

from configurator_sdk import EventType, HandlerError, Input, Output, View, handler, request
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
