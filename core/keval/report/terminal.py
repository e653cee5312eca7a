"""What may reach a terminal: text of others without secrets, and without what a terminal would obey.

A command shows everything through here or through `keval.report.console`, warnings and log records included.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import click

from keval.errors import PluginWarning
from keval.redaction import Redactor

__all__ = ["foreign", "guarded", "redactor", "tell", "visible"]

_SHOWN = {*"\n\t\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}", "\xa0", *"\u2000\u2001\u2002\u2003\u2004\u2005\u2006"}
_SHOWN |= {*"\u2007\u2008\u2009\u200a\u202f\u205f\u3000"}
"""What Python does not call printable and is harmless: ends of lines, spaces of all widths, and what joins emoji."""

_redactors: list[Redactor] = []


def redactor() -> Redactor:
    """Return the redactor of the command that runs; what it learns is shown nowhere from then on."""
    return _redactors[-1] if _redactors else Redactor()


def foreign(text: str) -> str:
    """Return text of others for a terminal: without secrets, with � in place of each control character.

    Those are what moves the cursor, begins an escape sequence, reverses the direction of writing or cannot be seen.
    """
    return visible(redactor().text(text))


def visible(text: str) -> str:
    """Return a text with � in place of each control character."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in _SHOWN else "\N{REPLACEMENT CHARACTER}"
        for char in text.replace("\r\n", "\n")
    )


def tell(text: str) -> None:
    """Print a message of one or more lines to stderr."""
    click.echo(foreign(text), err=True)


@contextmanager
def guarded() -> Iterator[None]:
    """Show warnings and log records like all else while a command runs, with a redactor of its own.

    A warning of a plugin is shown without the line of keval's own code that gave it.
    """
    usual, last = warnings.formatwarning, logging.lastResort

    def shown(
        message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
    ) -> str:
        if issubclass(category, PluginWarning):
            return f"warning: {foreign(str(message))}\n"
        return foreign(usual(message, category, filename, lineno, line))

    _redactors.append(Redactor())
    warnings.formatwarning, logging.lastResort = shown, _Handler(logging.WARNING)
    try:
        yield
    finally:
        warnings.formatwarning, logging.lastResort = usual, last
        _redactors.pop()


class _Handler(logging.StreamHandler):  # type: ignore[type-arg]  # generic to type checkers only
    """Shows log records where nobody has set logging up."""

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr  # tests and notebooks replace it
        super().emit(record)

    def format(self, record: logging.LogRecord) -> str:
        return foreign(super().format(record))
