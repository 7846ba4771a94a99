"""Documents: read, made and handed on."""

from typing import Any

from configurator_sdk import Input, Output, handler, request
from configurator_sdk.kubernetes import CONFIG_MAP


@handler("object", description="Hands the object on, read and untouched.")
def object(input: Input) -> Output:
    return Output().pass_on("read", input.object).pass_on("untouched", input.object_json)


@handler("numbers", description="Reads numbers.")
def numbers(input: Input) -> Output:
    """Integers of at most 53 bits and fractions, which every language has."""
    of = input.object["numbers"]
    integer, fraction = of["integer"], of["fraction"]
    return Output().data(
        {
            "doubled": integer * 2,
            "halved": fraction / 2,
            "negative": -integer,
            "list": [of["zero"], integer, fraction],
        }
    )


@handler("unicode", description="Texts of all kinds.")
def unicode(input: Input) -> Output:
    text = input.object["text"]
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": "shop", "name": "texts"},
        "data": {
            text: "key",
            "quoted": f'"{text}"',
            "control": "\0\x1f\t\n\x7f",
            "escapes": "\\ / < > & ' \u2028",
            "astral": "𝄞 🙂 汉字",
        },
    }
    apply = request(f"名-{text}", CONFIG_MAP.apply("shop", "texts", body))
    return Output(apply).pass_on("points", [ord(character) for character in text])


@handler("deep", description="A deep document.")
def deep(input: Input) -> Output:
    """As many levels as the parameter `levels` says: arrays in arrays, the innermost empty."""
    nested: list[Any] = []
    for _ in range(1, input.parameters.get("levels", 1)):
        nested = [nested]
    return Output().pass_on("nested", nested)


@handler("large", description="A large document.")
def large(input: Input) -> Output:
    """As many items as the parameter `items` says."""
    items = [
        {"index": i, "name": f"item-{i}", "even": i % 2 == 0, "tags": ["a", "b", None]}
        for i in range(input.parameters.get("items", 0))
    ]
    return Output().pass_on("items", items)
