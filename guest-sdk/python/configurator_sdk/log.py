"""Lines of the host's log.

The host adds the Configurator, the phase and the run's id to each line, and drops lines past its limit: 1,000 lines and 64 KiB a call,
4 KiB a line. Elsewhere, lines go to standard error.
"""

import sys

from .wire import Level

__all__ = ["Level", "debug", "error", "info", "line", "trace", "warn"]

try:
    from wit_world.imports.log import log as _send  # type: ignore[import-not-found]
except ImportError:

    def _send(level: Level, message: str, fields: list[tuple[str, str]]) -> None:
        known = "".join(f" {name}={value!r}" for name, value in fields)
        print(f"{level.name} {message}{known}", file=sys.stderr)


def line(level: Level, message: str, /, **fields: object) -> None:
    """A line with fields, which stay apart from the message in structured logs."""
    _send(level, message, [(name, str(value)) for name, value in fields.items()])


def trace(message: str, /, **fields: object) -> None:
    """For a person who follows every step."""
    line(Level.TRACE, message, **fields)


def debug(message: str, /, **fields: object) -> None:
    """For a person who looks for a fault."""
    line(Level.DEBUG, message, **fields)


def info(message: str, /, **fields: object) -> None:
    """What is worth knowing when all is well."""
    line(Level.INFO, message, **fields)


def warn(message: str, /, **fields: object) -> None:
    """What is odd and does no harm yet."""
    line(Level.WARN, message, **fields)


def error(message: str, /, **fields: object) -> None:
    """What went wrong."""
    line(Level.ERROR, message, **fields)
