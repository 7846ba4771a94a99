"""JSON documents: what goes to the host and comes from it.

What a handler makes is written without spaces, its keys in the order in which they were put in. Integers keep their digits, both ways, up
to the 4,300 of which Python makes an `int`; other numbers are floats.
"""

import json
from collections.abc import Callable
from typing import Any, NoReturn

__all__ = ["Json", "member", "text", "value"]


class Json(str):
    """A document that is JSON text already. It is handed on as it is, byte for byte, by itself or within another document; any other `str`
    is a JSON string.
    """

    __slots__ = ()


def text(document: Any) -> str:
    """The document as JSON text.

    What has no form in JSON is a `TypeError` or `ValueError`: NaN, infinities, bytes, dates.
    """
    if type(document) is Json:
        return str(document)
    written = _encode(document)
    encode = _encode
    if not written.isascii():
        try:
            written.encode()
        except UnicodeEncodeError:
            # Half of a surrogate pair has no form in UTF-8, only as an escape.
            encode = _encode_ascii
            written = encode(document)
    return _written(document, encode) if _holds_json(document) else written


def value(document: str) -> Any:
    """What JSON text says. A `ValueError` where it is none."""
    try:
        found, end = _decode_raw(document)
    except ValueError:
        end = -1
    # The other decoder knows of blanks around it, and what is wrong: to ask it each time costs as much as a small document.
    return found if end == len(document) else _decode(document)


def member(document: str, name: str) -> Any:
    """What a JSON object says under this name, or `None`, read without what comes behind it. Where a name comes twice, the first counts."""
    try:
        at = 1 if document[0] == "{" else 0
        while at:
            key, end = _decode_raw(document, at)
            # Blanks, and what is wrong, are for the other decoder.
            if document[end] != ":":
                break
            found, end = _decode_raw(document, end + 1)
            if key == name:
                return found
            at = end + 1 if document[end] == "," else 0
    except (ValueError, IndexError):
        pass
    return value(document).get(name)


def _holds_json(document: Any) -> bool:
    """Whether a part of the document is JSON text already, which the encoder takes for any `str`."""
    parts = document.values() if isinstance(document, dict) else document if isinstance(document, (list, tuple)) else ()
    for part in parts:
        kind = type(part)
        if kind is Json or (kind not in _SIMPLE and _holds_json(part)):
            return True
    return False


def _written(document: Any, encode: Callable[[Any], str]) -> str:
    """The document, which can be encoded, with the parts that are JSON text already as they stand."""
    if type(document) is Json:
        return str(document)
    if isinstance(document, dict):
        # A key need not be a `str`: the encoder says what becomes of it.
        members = (encode({key: 0})[1:-2] + _written(part, encode) for key, part in document.items())
        return "{" + ",".join(members) + "}"
    if isinstance(document, (list, tuple)):
        return "[" + ",".join([_written(part, encode) for part in document]) + "]"
    return encode(document)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


_SIMPLE = frozenset({str, int, float, bool, type(None)})
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_encode_ascii = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
_decoder = json.JSONDecoder(parse_constant=_refuse)
_decode, _decode_raw = _decoder.decode, _decoder.raw_decode
