"""What a dataset's record expects of the answers to it, under its key `expect`."""

from __future__ import annotations

import math
from typing import Any

import attrs

from keval.errors import suggestion
from keval.records import Expectation

__all__ = ["expectations_of"]

_TEXTS = ("contains", "not_contains", "regex", "tool_called")
_KEYS = tuple(attrs.fields_dict(Expectation))
_LONGEST_PATTERN = 10_000
"""Compiling a pattern cannot be interrupted, as matching can."""


def expectations_of(value: Any) -> tuple[Expectation, ...]:
    """Read one mapping of expectations, or a list of them. Raises ValueError: what is wrong."""
    if value is None:
        return ()
    return tuple(map(_expectation, value if isinstance(value, list) else [value]))


def _expectation(value: Any) -> Expectation:
    if not isinstance(value, dict):
        raise ValueError(f"'expect' is a mapping, or a list of mappings, with {', '.join(_KEYS)}")
    for key in value:
        if key not in _KEYS:
            hint = suggestion(str(key), _KEYS) or f"; known keys: {', '.join(_KEYS)}"
            raise ValueError(f"unknown key {key!r} in 'expect'{hint}")
    if not any(key in value for key in _KEYS if key != "conditions"):
        raise ValueError(f"'expect' expects nothing; add one of {', '.join(_KEYS[:-1])}")
    found = Expectation(
        **{key: _texts(value[key], key) for key in (*_TEXTS, "conditions") if key in value},
        max_seconds=_seconds(value.get("max_seconds")),
    )
    for pattern in found.regex:
        _check_pattern(pattern)
    return found


def _texts(value: Any, key: str) -> tuple[str, ...]:
    texts = value if isinstance(value, list) else [value]
    for text in texts:
        if not isinstance(text, str) or not text:
            raise ValueError(f"'expect.{key}' is a text or a list of texts, none of them empty, got {text!r}")
    if not texts:
        raise ValueError(f"'expect.{key}' is an empty list; name something, or leave it out")
    return tuple(texts)


def _seconds(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not (value > 0 and math.isfinite(value)):
        raise ValueError(f"'expect.max_seconds' is a number above 0, got {value!r}")
    return float(value)


def _check_pattern(pattern: str) -> None:
    import regex  # needed only where a pattern is expected

    if len(pattern) > _LONGEST_PATTERN:
        raise ValueError(f"a pattern of 'expect.regex' has {len(pattern)} characters, more than {_LONGEST_PATTERN}")
    try:
        regex.compile(pattern)
    except (regex.error, ValueError, OverflowError, RecursionError) as error:
        raise ValueError(f"'expect.regex' has {pattern!r:.100}, which is no regular expression: {error}") from error
