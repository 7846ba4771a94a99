"""Requests to HTTP endpoints.

Any answer is a success, whatever its status; only a transport that fails is a fault. Redirects are not followed. Addresses that are not
public are refused unless the operator of the host lists the name.
"""

from collections.abc import Iterable, Mapping

from . import wire

__all__ = ["Headers", "get", "post", "send"]

Headers = Mapping[str, str] | Iterable[tuple[str, str]]
"""Values by name; or pairs of both, in which a name may come again."""


def send(
    method: str,
    url: str,
    *,
    headers: Headers | None = None,
    body: bytes | str | None = None,
) -> wire.Operation:
    """A request of any method, in upper case. The URL holds no credentials. A body that is a `str` is sent in UTF-8.

    The header `host` is refused, since it follows from the URL; `content-length` must be that of the body. The host adds an
    `Idempotency-Key` unless there is one: the same on every attempt of the request, also after a restart of the host.
    """
    sent = body.encode() if isinstance(body, str) else body
    pairs = headers.items() if isinstance(headers, Mapping) else headers or ()
    return wire.Operation_Http(wire.HttpRequest(method, url, list(pairs), sent))


def get(url: str, *, headers: Headers | None = None) -> wire.Operation:
    """A GET."""
    return send("GET", url, headers=headers)


def post(url: str, *, headers: Headers | None = None, body: bytes | str | None = None) -> wire.Operation:
    """A POST."""
    return send("POST", url, headers=headers, body=body)
