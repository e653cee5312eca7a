"""What may reach a terminal: text of others without secrets, and without what a terminal would obey.

A command shows everything through here or through `keval.cli.console`, warnings and log records included.
"""

from __future__ import annotations

import io
import json
import logging
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import attrs
import click

from keval.errors import PluginWarning
from keval.redaction import Redactor

_SHOWN = {*"\n\t\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}", "\xa0", *"\u2000\u2001\u2002\u2003\u2004\u2005\u2006"}
_SHOWN |= {*"\u2007\u2008\u2009\u200a\u202f\u205f\u3000"}
"""What Python does not call printable and is harmless: ends of lines, spaces of all widths, and what joins emoji."""


@attrs.define
class _Terminal:
    """What a command shows: without the secrets that its redactor knows, and its messages as JSON or as text.

    `aside` is given what other packages than keval's warn of, if that is not shown.
    """

    redactor: Redactor = attrs.field(factory=Redactor)
    json: bool = False
    aside: Callable[[str, str], object] | None = None


# A stack: what a command calls as another command has a redactor of its own meanwhile.
_terminals: list[_Terminal] = []


def redactor() -> Redactor:
    """Return the redactor of the command that runs; what it learns is shown nowhere from then on."""
    return _terminals[-1].redactor if _terminals else Redactor()


def log_as_json() -> None:
    """Write every message of the command that runs as a line of JSON from now on."""
    if _terminals:
        _terminals[-1].json = True


def logs_json() -> bool:
    """Return whether the command that runs writes its messages as lines of JSON."""
    return bool(_terminals) and _terminals[-1].json


def set_aside(keep: Callable[[str, str], object] | None) -> None:
    """Give `keep` what other packages warn of, in place of showing it: the file that warns, and the text."""
    if _terminals:
        _terminals[-1].aside = keep


def log_event(event: str, **fields: Any) -> None:
    """Write an event to stderr as a line of JSON, with the time in UTC, and without secrets."""
    click.echo(_event(event, fields), err=True)


def foreign(text: str) -> str:
    """Return text of others for a terminal: without secrets, with � in place of each control character.

    Those are what moves the cursor, begins an escape sequence, reverses the direction of writing or cannot be seen.
    """
    return visible(redactor().text(text))


def visible(text: str) -> str:
    """Return a text with � in place of each control character."""
    if text.isprintable():
        return text
    # Windows' ends of lines are harmless; a carriage return alone would overwrite the line.
    return "".join(
        char if char.isprintable() or char in _SHOWN else "\N{REPLACEMENT CHARACTER}"
        for char in text.replace("\r\n", "\n")
    )


def tell(text: str) -> None:
    """Print a message of one or more lines to stderr."""
    if logs_json():
        log_event("message", message=text)
    else:
        click.echo(foreign(text), err=True)


@contextmanager
def guarded() -> Iterator[None]:
    """Show warnings and log records like all else while a command runs, with a redactor of its own.

    A warning of a plugin is shown without the line of keval's own code that gave it.
    """
    usual, handler = warnings.formatwarning, _Handler(logging.WARNING)

    def shown(
        message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
    ) -> str:
        if (keep := _terminals[-1].aside) is not None and not issubclass(category, PluginWarning):
            keep(filename, f"{category.__name__}: {message}")
            return ""
        if logs_json():
            return _event("message", {"message": f"warning: {message}"}) + "\n"
        if issubclass(category, PluginWarning):
            return f"warning: {foreign(str(message))}\n"
        return foreign(usual(message, category, filename, lineno, line))

    _terminals.append(_Terminal())
    warnings.formatwarning = shown
    logging.root.addHandler(handler)
    try:
        yield
    finally:
        warnings.formatwarning = usual
        logging.root.removeHandler(handler)
        _terminals.pop()


class _Handler(logging.StreamHandler):  # type: ignore[type-arg]  # generic to type checkers only
    """Shows log records where nobody has set logging up, each text once.

    It is a handler of the root logger, because without one `logging.warning` sets logging up for the whole process, and
    then all that libraries log is printed, with tracebacks.
    """

    def __init__(self, level: int) -> None:
        super().__init__()
        self.setLevel(level)
        self._shown: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        if (keep := _terminals[-1].aside) is not None and not record.name.startswith("keval"):
            raised = f": {record.exc_info[1]!r}" if record.exc_info else ""
            keep(record.pathname, f"{record.levelname}: {record.getMessage()}{raised}")
            return
        if _is_handled(record) or (text := record.getMessage()) in self._shown:
            return
        self._shown.add(text)
        self.stream = sys.stderr  # tests and notebooks replace it
        super().emit(record)

    def format(self, record: logging.LogRecord) -> str:
        told = super().format(record)
        return _event("message", {"message": told}) if logs_json() else foreign(told)


def _is_handled(record: logging.LogRecord) -> bool:
    """Return whether a logger that passed the record on has a handler of its own, if only one that drops it."""
    logger: logging.Logger | None = logging.getLogger(record.name)
    while logger is not None and logger is not logging.root:
        if logger.handlers:
            return True
        logger = logger.parent
    return any(not isinstance(handler, _Handler) for handler in logging.root.handlers)


class JsonMessages(io.TextIOBase):
    """A text file that writes each line it gets as a message, for a console."""

    def __init__(self) -> None:
        self._line = ""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            if line.strip():
                log_event("message", message=line.rstrip())
        return len(text)


def _event(event: str, fields: Mapping[str, Any]) -> str:
    at = datetime.now(UTC).isoformat(timespec="milliseconds")
    # As ASCII, in which nothing is left that a terminal would obey.
    return json.dumps({"at": at, "event": event, **redactor().data(dict(fields))})
