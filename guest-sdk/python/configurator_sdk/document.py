"""JSON documents: what goes to the host and comes from it.

What a handler makes is written without spaces, its keys in the order in which they were put in. Integers keep all their digits, both ways;
other numbers are floats.
"""

import json
from typing import Any

__all__ = ["Json", "text", "value"]


class Json(str):
    """A document that is JSON text already. It is handed on as it is, byte for byte; any other `str` is a JSON string."""

    __slots__ = ()


def text(document: Any) -> str:
    """The document as JSON text.

    What has no form in JSON is a `TypeError` or `ValueError`: NaN, infinities, bytes, dates.
    """
    if type(document) is Json:
        return str(document)
    written = _encode(document)
    if not written.isascii():
        try:
            written.encode()
        except UnicodeEncodeError:
            # Half of a surrogate pair has no form in UTF-8, only as an escape.
            return _encode_ascii(document)
    return written


def value(document: str) -> Any:
    """What JSON text says."""
    return json.loads(document)


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_encode_ascii = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
