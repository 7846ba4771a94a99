"""Texts of the parameters."""

from configurator_sdk import HandlerError, Input


def parameter(input: Input, name: str) -> str:
    text = input.parameters.get(name)
    if not isinstance(text, str):
        raise HandlerError(f"there is no parameter {name}", fatal=True)
    return text
