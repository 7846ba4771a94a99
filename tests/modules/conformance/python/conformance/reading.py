"""What a handler is given beside its object."""

from collections.abc import Callable
from typing import Any

from configurator_sdk import Accepts, HandlerError, Input, Output, RequestError, Result, View, handler

from .parameter import parameter


def kind(error: RequestError) -> str:
    """The kind in the contract's spelling."""
    return error.kind.name.lower().replace("_", "-")


def told(result: Result) -> dict[str, Any]:
    """What a result says."""
    error = result.error
    return {
        "name": result.name,
        "declarative": result.is_declarative,
        "objects": [] if error else result.objects,
        "error": error
        and {
            "kind": kind(error),
            "message": error.message,
            "retryable": error.retryable,
            "status": error.status,
        },
        "response": answer(result),
        "created": result.created,
        "finished": result.finished,
    }


def answer(result: Result) -> dict[str, Any] | None:
    try:
        response = result.response
    except HandlerError:
        return None
    return {
        "status": response.status,
        "type": response.header("Content-Type"),
        "body": response.body.decode(errors="replace"),
    }


@handler("results", description="Reads results.")
def results(input: Input) -> Output:
    """Tells of each result, in order; of `wanted`, which must be there, whether it was found; of `absent`, that it is not there."""
    every: list[dict[str, Any]] = []
    for _, entry in input.results.all():
        every += [told(one) for one in (entry if isinstance(entry, list) else [entry])]
    return (
        Output()
        .pass_on("all", every)
        .pass_on("found", input.result("wanted").found is not None)
        .pass_on("absent", input.result_opt("absent") is not None)
    )


@handler("groups", description="Reads groups of results.")
def groups(input: Input) -> Output:
    pods = input.group("pods")
    return (
        Output()
        .pass_on("pods", [one.name for one in pods])
        .pass_on("failed", sum(one.error is not None for one in pods))
        .pass_on("none", [one.name for one in input.group_opt("none")])
    )


@handler("reads", description="Reads in one of several ways.", accepts=Accepts.EITHER)
def reads(input: Input) -> Output:
    """Reads the result or the group `asked`, or why the object is in the run, as the parameter `read` says."""
    ways: dict[str, Callable[[], Any]] = {
        "succeeded": lambda: input.result("asked").succeeded() is not None,
        "object": lambda: input.result("asked").object,
        "objects": lambda: input.result("asked").objects,
        "json": lambda: input.result("asked").response.json(),
        "group": lambda: [one.name for one in input.group("asked")],
        "answers": lambda: [one.name for one in input.answers("asked")],
        "event": lambda: input.event.name.lower(),
    }
    return Output().pass_on("read", ways[parameter(input, "read")]())


@handler("nested-json", description="Puts a document into another.")
def nested_json(input: Input) -> Output:
    """Puts the argument `raw` into documents, as it stands."""
    raw = input.arg_json("raw")
    return Output().pass_on("object", {"a": raw}).pass_on("list", [1, (raw, raw), "é"])


@handler("arguments", description="Reads and hands on arguments.")
def arguments(input: Input) -> Output:
    """Reads an argument and hands it on beside another, untouched."""
    return Output().pass_on("count", input.arg("count") + 1).pass_on("raw", input.arg_json("raw"))


@handler("context", description="Reads the facts of the call.")
def context(input: Input) -> Output:
    facts = input.context
    cause = facts.cause
    detail: Any = None
    if cause.signal is not None:
        detail = {"name": cause.signal.name, "data": cause.signal.data}
    elif cause.changed is not None:
        key = cause.changed
        detail = [key.group, key.version, key.plural, key.namespace, key.name]
    return Output().data(
        {
            "configurator": facts.configurator,
            "phase": facts.phase,
            "node": facts.node,
            "entry": facts.entry,
            "attempt": facts.attempt,
            "cause": cause.kind,
            "detail": detail,
            "now": facts.now,
            "seed": str(facts.seed),
            "runId": facts.run_id,
            "parameters": input.parameters,
        }
    )


@handler("state", description="Reads what it left behind.", view=View.CHECK_LIST)
def state(input: Input) -> Output:
    """Adds one to its notes; tells of its last failure, of the answer to `ask`, and of the step that the parameter `step` names."""
    count = (input.notes or {}).get("count", 0)
    last: dict[str, Any] = {}
    if input.last is not None:
        error = input.last.error
        last = {
            "failed": input.last.failed,
            "fatal": input.last.fatal,
            "error": error and error.message,
        }
    answered = input.answer("ask")
    answer = None if answered is None else answered.object
    step = input.output_of(parameter(input, "step"))
    return (
        Output()
        .data({"count": count + 1})
        .output({"answer": answer, "step": step})
        .details(last)
        .progress(50, "half")
        .again()
    )
