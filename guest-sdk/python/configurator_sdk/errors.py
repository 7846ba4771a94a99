"""How a handler fails."""

from datetime import timedelta

from . import wire

__all__ = ["HandlerError"]


class HandlerError(Exception):
    """What a handler raises when it cannot decide.

    Unless it is `fatal`, the handler is called again: after `retry_after`, or the Configurator's backoff. A fatal error is one that the
    same input will always give: the phase fails at once. `code` is looked up in the Configurator's `errorCodes`, in a machine.

    Any other exception of a handler is taken for one that is not fatal, with the exception's name and message.
    """

    def __init__(
        self,
        message: str,
        *,
        fatal: bool = False,
        retry_after: timedelta | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.fatal = fatal
        self.retry_after = retry_after
        self.code = code

    @classmethod
    def of_wire(cls, error: wire.HandlerError) -> "HandlerError":
        """As the host gives it."""
        after = None if error.retry_after is None else timedelta(milliseconds=error.retry_after)
        return cls(error.message, fatal=error.fatal, retry_after=after, code=error.code)

    def to_wire(self) -> wire.HandlerError:
        """As the host takes it."""
        return wire.HandlerError(self.message, self.fatal, milliseconds(self.retry_after), self.code)


def milliseconds(span: timedelta | None) -> int | None:
    """A span as the contract has it: whole milliseconds, and never fewer than none."""
    return None if span is None else max(0, span // timedelta(milliseconds=1))
