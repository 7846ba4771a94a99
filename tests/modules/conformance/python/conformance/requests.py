"""What requests can have whatever they ask for."""

from datetime import timedelta

from configurator_sdk import (
    BatchErrorStrategy,
    Input,
    ObjectRef,
    OnError,
    Output,
    Readiness,
    handler,
    http,
    request,
)
from configurator_sdk.configstore import Basic
from configurator_sdk.kubernetes import CONFIG_MAP

from .parameter import parameter


@handler("http", description="HTTP endpoints.")
def endpoints(input: Input) -> Output:
    headers = {"content-type": "application/json", "x-team": "red"}
    return Output(
        request("get", http.get("https://hooks.example.com/a?b=c%20d")),
        request("post", http.post("https://hooks.example.com/", headers=headers, body='{"text":"é"}')),
        request("put", http.send("PUT", "http://hooks.example.com:8080/blob", body=bytes([0, 255, 10]))),
    )


@handler("options", description="What every request can have.")
def options(input: Input) -> Output:
    ask = Basic("key").get()
    return Output(
        request("plain", ask),
        request("declarative", Basic("key").put("1"), declarative=True),
        request("grouped", ask, group_by="group"),
        request("bootstrap", ask, bootstrap_dep=True),
        request("of", ask, of=ObjectRef("shop", "web")),
        request("fail", ask, on_error=OnError.FAIL),
        request("catch", ask, on_error=OnError.CATCH_ERROR),
        request("drop", ask, on_error=OnError.DROP_ERROR),
        request("once", ask, once=True),
        request("timeout", ask, timeout=timedelta(milliseconds=1500)),
        request("partition", ask, partition="team-a"),
    )


@handler("strategy", description="Orders of execution.")
def strategy(input: Input) -> Output:
    output = Output(request("one", Basic("key").get(), group_by="all"))
    match parameter(input, "strategy"):
        case "serial":
            return output.serial().batch_error_strategy(BatchErrorStrategy.DROP_ERROR)
        case "parallel":
            return output.parallel().batch_error_strategy(BatchErrorStrategy.CATCH_ERROR)
    return output


@handler("graph", description="Requests that depend on one another.")
def graph(input: Input) -> Output:
    def apply(name: str):
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "shop", "name": name}}
        return CONFIG_MAP.apply("shop", name, body)

    is_ready = Readiness.expression("object.data.ready == 'yes'")
    return Output(
        request("a", apply("a"), ready_when=Readiness.EXISTS),
        request("b", apply("b"), ready_when=Readiness.OBSERVED, depends_on=["a"]),
        request("c", apply("c"), ready_when=is_ready, depends_on=["a", "b"]),
        request("d", apply("d"), ready_when=Readiness.HEALTHY, depends_on=["c"]),
    ).graph()
