"""Characteristics: what an agent framework asks of its developer (metrics-assessment.md, sections 10 to 12)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import attrs

from keval.plugin import FieldError, suggestion

__all__ = ["Characteristics", "check_characteristics", "read_characteristics"]

_LEVELS = ("low", "medium", "high")
_WORDS: Mapping[str, tuple[str, ...]] = {
    "setup": _LEVELS,
    "code": _LEVELS,
    "learning": _LEVELS,
    "memory": ("built-in", "manual"),
    "errors": ("framework", "manual"),
    "logging": ("framework", "basic"),
    "documentation": ("comprehensive", "moderate", "minimal"),
}
_COUNTS: Mapping[str, int] = {"files": 1, "tool_files": 0}
"""Keys with whole numbers, each with the least one."""


@attrs.frozen
class Characteristics:
    """What the metrics of developer experience read; `None` is unknown.

    `files` is how many files the same use case took; `tool_files` how many must change to add a tool; `setup`, `code`
    and `learning` are complexity levels.
    """

    files: int | None = None
    setup: str | None = None
    code: str | None = None
    learning: str | None = None
    tool_files: int | None = None
    memory: str | None = None
    errors: str | None = None
    logging: str | None = None
    documentation: str | None = None


def check_characteristics(characteristics: Mapping[str, object]) -> Iterator[FieldError]:
    """Yield the keys that these metrics do not know, and the values that they cannot read."""
    known = [field.name for field in attrs.fields(Characteristics)]
    for key, value in characteristics.items():
        if key not in known:
            hint = suggestion(key, known) or f"; known keys: {', '.join(known)}"
            yield FieldError((key,), f"unknown key {key!r}{hint} (the weather metrics)", at_key=True)
        elif value is not None and not _fits(key, value):
            yield FieldError((key,), f"expected {_wanted(key)}, got {value!r} (the weather metrics)")


def read_characteristics(characteristics: Mapping[str, Any]) -> Characteristics:
    """Return the characteristics of an agent. Raises ValueError: a key or value that these metrics do not know."""
    return _read(tuple(sorted(characteristics.items())))


@lru_cache(maxsize=64)
def _read(items: Iterable[tuple[str, Any]]) -> Characteristics:
    given = dict(items)
    for error in check_characteristics(given):
        raise ValueError(f"characteristics.{error.path[0]}: {error.message}")
    return Characteristics(**given)


def _fits(key: str, value: object) -> bool:
    if key in _WORDS:
        return value in _WORDS[key]
    return isinstance(value, int) and not isinstance(value, bool) and value >= _COUNTS[key]


def _wanted(key: str) -> str:
    if key in _WORDS:
        return " or ".join(_WORDS[key])
    return f"a whole number from {_COUNTS[key]} on"
