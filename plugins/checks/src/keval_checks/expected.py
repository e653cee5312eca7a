"""What a text must be: the options that several checks have, and what does not hold, in words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import attrs
import regex

from keval.plugin import read_input
from keval_checks.left_files import cannot_run

Texts: TypeAlias = str | tuple[str, ...]
Schema: TypeAlias = Mapping[str, Any] | Path
"""A JSON Schema, or the path of its file."""

_SHOWN = 160
_MOST_SCHEMA_BYTES = 10_000_000
_ABSENT: Any = object()


def shown(text: str, longest: int = _SHOWN) -> str:
    """Quote a text on one line, cut to `longest` characters."""
    # Cut first, as it may be the text of a whole file.
    line = " ".join(text[: 2 * longest].split())
    if len(line) > longest or len(text) > 2 * longest:
        line = line[: longest - 1] + "…"
    return f"'{line}'"


def texts(field: str, given: Texts) -> tuple[str, ...]:
    """Return the texts of an option. Raises ValueError: one is empty."""
    found = (given,) if isinstance(given, str) else given
    if "" in found:
        raise ValueError(f"'{field}' must hold no empty text, which every text contains")
    return found


@attrs.frozen
class Expected:
    """What must hold of a text, all of it: what it contains, the pattern that is found in it, and its JSON's schema."""

    contains: tuple[str, ...] = ()
    not_contains: tuple[str, ...] = ()
    pattern: regex.Pattern[str] | None = None
    schema: Mapping[str, Any] | None = None

    @classmethod
    def of(
        cls, contains: Texts = (), not_contains: Texts = (), matches: str | None = None, schema: Schema | None = None
    ) -> Expected:
        """Read the options of these names; that of `schema` is `json_schema`. Raises ValueError: one is wrong."""
        try:
            pattern = None if matches is None else regex.compile(matches)
        except (regex.error, ValueError, OverflowError, RecursionError) as error:
            raise ValueError(f"'matches' must be a regular expression: {error} in {shown(matches or '')}") from error
        return cls(
            texts("contains", contains),
            texts("not_contains", not_contains),
            pattern,
            None if schema is None else _read_schema(schema),
        )

    def fault(self, text: str, seconds: float, value: Any = _ABSENT) -> str | None:
        """Return what does not hold of `text`, as the rest of a sentence; `None` if all does.

        A `value` is what the schema is for, in place of the text's JSON.

        Raises:
            TrialError: the pattern or the schema was not done with it within `seconds`.
        """
        for part in self.contains:
            if part not in text:
                return f"does not contain {shown(part)}: {shown(text)}"
        for part in self.not_contains:
            if (at := text.find(part)) >= 0:
                return f"contains {shown(part)}: {shown(text[max(at - 40, 0) :])}"
        if self.pattern is not None:
            told = shown(self.pattern.pattern)
            try:
                # `regex` and not `re`, which cannot be stopped.
                if self.pattern.search(text, timeout=seconds) is None:
                    return f"has nothing that matches {told}: {shown(text)}"
            except (TimeoutError, MemoryError) as error:
                remedy = "make its repeats possessive or bounded"
                raise cannot_run(f"the pattern {told} was not done in {seconds:g} s; {remedy}", "timeout") from error
        if self.schema is None:
            return None
        if value is _ABSENT:
            try:
                value = json.loads(text)
            except (ValueError, RecursionError) as error:
                return f"is no JSON ({error}): {shown(text)}"
        return _misfit(self.schema, value, seconds)


def _read_schema(given: Schema) -> Mapping[str, Any]:
    from keval_metrics_basic import compiled  # it takes 0.3 s to import, and few checks have a schema

    try:
        schema = json.loads(read_input(given, _MOST_SCHEMA_BYTES)) if isinstance(given, Path) else given
        if not isinstance(schema, Mapping):
            raise ValueError(f"{given} holds no JSON object")
        compiled(schema)
    except OSError as error:
        raise ValueError(f"'json_schema' must be a file that can be read: {given}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"'json_schema' must be a JSON Schema: {error}") from error
    return schema


def _misfit(schema: Mapping[str, Any], value: Any, seconds: float) -> str | None:
    from keval_metrics_basic import compiled, time_limit

    try:
        with time_limit(seconds):
            error = next(compiled(schema).iter_errors(value), None)
    except (TimeoutError, MemoryError) as late:
        raise cannot_run(f"the schema was not done with it in {seconds:g} s", "timeout") from late
    except (regex.error, RecursionError, OverflowError) as wrong:
        raise cannot_run(f"the schema cannot be applied to it: {wrong}") from wrong
    return None if error is None else f"does not fit the schema: {error.json_path}: {shown(error.message)}"
