"""Results: what servers answered."""

from collections.abc import Iterable
from functools import cached_property
from typing import Any

from . import document, wire
from .document import Json
from .errors import HandlerError
from .wire import ErrorKind, RequestError, RequestSink

__all__ = ["ErrorKind", "HttpResponse", "RequestError", "RequestSink", "Result", "Results"]


class HttpResponse:
    """What an HTTP endpoint answered."""

    def __init__(self, response: wire.HttpResponse) -> None:
        self.status: int = response.status
        """The status, whatever it is."""
        self.headers: list[tuple[str, str]] = response.headers
        """Names are in lower case."""
        self.body: bytes = response.body
        """The body."""

    def header(self, name: str) -> str | None:
        """The value of the header of this name, in lower case."""
        return next((value for known, value in self.headers if known == name), None)

    def json(self) -> Any:
        """What the body says. A fatal error where it is no JSON."""
        try:
            return document.value(self.body.decode())
        except ValueError as error:
            raise HandlerError("the body of the answer is no JSON", fatal=True) from error


class Result:
    """What became of a request."""

    def __init__(self, result: wire.RequestResult) -> None:
        self._result = result

    @property
    def name(self) -> str:
        """That of the request; tells the results of a group apart."""
        return self._result.request_name

    @property
    def sink(self) -> RequestSink:
        """The server that the request went to."""
        return self._result.request_sink

    @property
    def is_declarative(self) -> bool:
        """Whether the phase has not waited for it."""
        return self._result.is_declarative

    @property
    def created(self) -> str:
        """When the request was made."""
        return self._result.created_timestamp

    @property
    def finished(self) -> str | None:
        """When it was answered; `None` for a declarative one that was not yet."""
        return self._result.finished_timestamp

    @property
    def error(self) -> RequestError | None:
        """Why it failed, where a failure is caught: `kind`, `message`, `retryable`, `status`."""
        return self._result.error

    def succeeded(self) -> "Result":
        """Itself. Raises the request's error, with its name; fatal unless a retry may help."""
        error = self.error
        if error is not None:
            message = f"the request `{self.name}` failed: {error.message}"
            raise HandlerError(message, fatal=not error.retryable)
        return self

    @cached_property
    def object(self) -> Any:
        """The first document of the answer. Raises as `succeeded` does; fatal where there is none: see `found`."""
        return document.value(self.object_json)

    @property
    def object_json(self) -> Json:
        """The first document of the answer as text. Raises as `object` does."""
        documents = self.succeeded()._result.query_objects
        if not documents:
            raise HandlerError(f"the result `{self.name}` has no object", fatal=True)
        return Json(documents[0])

    @cached_property
    def objects(self) -> list[Any]:
        """Every document of the answer: one for each item of a list. Raises as `succeeded` does."""
        return [document.value(one) for one in self.objects_json]

    @property
    def objects_json(self) -> list[Json]:
        """Every document of the answer as text. Raises as `succeeded` does."""
        return [Json(one) for one in self.succeeded()._result.query_objects]

    @property
    def found(self) -> Any:
        """The first document, or `None` where the server has no such object. Raises as `succeeded` does for any other failure."""
        error = self.error
        if error is not None and error.kind == ErrorKind.RESOURCE_NOT_FOUND:
            return None
        return self.object if self.succeeded()._result.query_objects else None

    @property
    def response(self) -> HttpResponse:
        """What an HTTP endpoint answered. Raises as `succeeded` does; fatal when the request was none to an HTTP endpoint."""
        response = self.succeeded()._result.http_response
        if response is None:
            raise HandlerError(f"the result `{self.name}` is none of an HTTP request", fatal=True)
        return HttpResponse(response)

    @classmethod
    def answered(cls, name: str, *objects: Any, sink: RequestSink = RequestSink.KUBERNETES) -> "Result":
        """For tests: as the host gives it for a request that succeeded."""
        return cls(_result(name, sink, [document.text(one) for one in objects]))

    @classmethod
    def responded(cls, name: str, status: int, body: Any = None, headers: Iterable[tuple[str, str]] = ()) -> "Result":
        """For tests: as the host gives it for an HTTP request. A body that is not `bytes` is written as JSON."""
        if not isinstance(body, bytes):
            body = b"" if body is None else document.text(body).encode()
        result = _result(name, RequestSink.HTTP, [])
        result.http_response = wire.HttpResponse(status, list(headers), body)
        return cls(result)

    @classmethod
    def failed(
        cls,
        name: str,
        kind: ErrorKind,
        message: str = "",
        *,
        sink: RequestSink = RequestSink.KUBERNETES,
        status: int | None = None,
    ) -> "Result":
        """For tests: as the host gives it for a request that failed and was caught."""
        result = _result(name, sink, [])
        result.error = RequestError(kind, message, kind in _RETRYABLE, status)
        return cls(result)

    def to_wire(self) -> wire.RequestResult:
        """As the host gives it."""
        return self._result


class Results:
    """Results by the name of their request, and groups of them by their key, in the order of the requests."""

    def __init__(self, who: str, entries: list[tuple[str, wire.ResultEntry]]) -> None:
        self._who = who
        self._entries = entries

    def result(self, name: str) -> Result:
        """The result of the request of this name. A fatal error where there is none, or a group has this key."""
        entry = self._entry(name)
        if isinstance(entry, wire.ResultEntry_One):
            return Result(entry.value)
        message = f"`{name}` is a group of results, not the result of one request: read it as a group"
        raise HandlerError(message, fatal=True)

    def result_opt(self, name: str) -> Result | None:
        """The result of the request of this name, or `None`: also where a group has this key."""
        entry = self._find(name)
        return Result(entry.value) if isinstance(entry, wire.ResultEntry_One) else None

    def group(self, key: str) -> list[Result]:
        """The results of all requests with this `group_by`. A fatal error where there are none, or a single request has this name."""
        entry = self._entry(key)
        if isinstance(entry, wire.ResultEntry_Group):
            return [Result(one) for one in entry.value]
        message = f"`{key}` is the result of one request, not a group: read it as a result"
        raise HandlerError(message, fatal=True)

    def group_opt(self, key: str) -> list[Result]:
        """The results of all requests with this `group_by`; empty where no request had it."""
        entry = self._find(key)
        return [Result(one) for one in entry.value] if isinstance(entry, wire.ResultEntry_Group) else []

    def all(self) -> list[tuple[str, Result | list[Result]]]:
        """Every result by its name, and every group by its key."""
        return [
            (key, Result(entry.value) if isinstance(entry, wire.ResultEntry_One) else self.group(key))
            for key, entry in self._entries
        ]

    def _find(self, key: str) -> wire.ResultEntry | None:
        return next((entry for known, entry in self._entries if known == key), None)

    def _entry(self, key: str) -> wire.ResultEntry:
        entry = self._find(key)
        if entry is None:
            raise HandlerError(missing(self._who, "result", key, self._entries), fatal=True)
        return entry


def missing(who: str, what: str, key: str, known: list[tuple[str, Any]]) -> str:
    """What to say where `who` has left no `what` under this key."""
    names = ", ".join(name for name, _ in known) or f"no {what}s"
    return f"no {what} `{key}`: {who} left {names}"


def entries(
    results: Iterable[Result], groups: Iterable[tuple[str, Iterable[Result]]]
) -> list[tuple[str, wire.ResultEntry]]:
    """As the host gives them."""
    one: list[tuple[str, wire.ResultEntry]] = [
        (result.name, wire.ResultEntry_One(result.to_wire())) for result in results
    ]
    return one + [(key, wire.ResultEntry_Group([result.to_wire() for result in group])) for key, group in groups]


def _result(name: str, sink: RequestSink, documents: list[str]) -> wire.RequestResult:
    now = "2026-01-01T00:00:00.000Z"
    return wire.RequestResult(name, sink, False, documents, now, now, None, None)


_RETRYABLE = {
    ErrorKind.RESOURCE_NOT_FOUND,
    ErrorKind.RESOURCE_CONFLICT,
    ErrorKind.RESOURCE_MUTATION,
    ErrorKind.API_SERVER_UNAVAILABLE,
    ErrorKind.CONFIGSTORE_UNAVAILABLE,
    ErrorKind.SECRETSTORE_UNAVAILABLE,
    ErrorKind.HTTP_UNAVAILABLE,
    ErrorKind.EXTENSION_UNAVAILABLE,
}
"""The contract's table."""
