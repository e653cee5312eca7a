"""A cell of a CSV file, and what guards a spreadsheet from it."""

from __future__ import annotations

from typing import Any

__all__ = ["cell", "guarded", "unguarded"]

_MARK = "'"
_FORMULAS = tuple("=+-@\t\r\n＝＋－＠")
"""How a text begins that spreadsheets take for a formula: OWASP, "CSV Injection"."""


def cell(value: Any, *, guard: bool) -> str:
    """Return a value as a cell: a text in quotes, a number or truth value as it is, and nothing for `None`."""
    if value is None:
        return ""
    if isinstance(value, str):
        told = guarded(value) if guard else value
        return '"' + told.replace('"', '""') + '"'
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)


def guarded(text: str) -> str:
    """Return a text with an apostrophe before it, if a spreadsheet would take it for a formula.

    A text that begins with an apostrophe has another one before it, so that `unguarded` returns every text.
    """
    return f"{_MARK}{text}" if text.startswith((*_FORMULAS, _MARK)) else text


def unguarded(text: str) -> str:
    """Return the text that `guarded` was given."""
    return text.removeprefix(_MARK)
