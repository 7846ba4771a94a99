"""Gives every Namespace a ConfigMap `hello`."""

from configurator_sdk import HandlerError, Input, Output, handler, request
from configurator_sdk.kubernetes import CONFIG_MAP


@handler("root", description="Gives a Namespace its ConfigMap.")
def root(input: Input) -> Output:
    name = input.object.get("metadata", {}).get("name")
    if name is None:
        raise HandlerError("the object has no name", fatal=True)
    hello = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": name, "name": "hello"},
        "data": {"greeting": f"hello, {name}"},
    }
    return Output(request("hello", CONFIG_MAP.apply(name, "hello", hello)))
