"""Structured answers: is the answer JSON, and of the expected shape."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import attrs
import regex

from keval import Score, Trial
from keval.plugin import read_input
from keval_metrics_basic.bounded import time_limit
from keval_metrics_basic.evidence import NO_TRANSCRIPT, excerpt
from keval_metrics_basic.references import is_place, no_reference, value_at
from keval_metrics_basic.schemas import SchemaMisfitError, compiled

__all__ = ["JsonSchema"]

_MOST_ERRORS = 20
_MOST_BYTES = 10_000_000
_SECONDS = 1.0
_WANTED = "a JSON Schema"


@attrs.frozen
class JsonSchema:
    """Scores 1 if the answer is JSON that fits `schema`, the schema in the file `path`, or else the reference.

    The whole answer is read, or with `fenced` the first block in it that is marked as JSON.
    """

    schema: Mapping[str, Any] | None = None
    path: Path | None = None
    reference: str = attrs.field(default="answer", validator=is_place)
    fenced: bool = True
    _given: Mapping[str, Any] | None = attrs.field(init=False, repr=False, eq=False)

    @_given.default
    def _read(self) -> Mapping[str, Any] | None:
        """Read and check what the options give, so that a wrong one is known before anything runs."""
        if self.schema is not None and self.path is not None:
            raise ValueError("'path' must not be given beside `schema`; keep one")
        name = "schema" if self.path is None else "path"
        try:
            schema = self.schema if self.path is None else _loaded(self.path)
            if schema is not None:
                compiled(schema)
        except ValueError as error:
            raise ValueError(f"{name!r} must be {_WANTED}: {error}") from error
        return schema

    def score(self, trial: Trial) -> Score:
        """Check the answer against the schema."""
        if trial.transcript is None:
            return NO_TRANSCRIPT
        schema = self._given
        if schema is None:
            schema = _schema(value_at(trial.sample, self.reference))
            if schema is None:
                return no_reference(trial.sample, self.reference, _WANTED, "`schema` or `path`")
        try:
            validator = compiled(schema)
        except SchemaMisfitError as error:
            return Score(None, f"{self.reference} of the sample is not {_WANTED}: {error}")
        try:
            where, value = _parsed(trial.output, self.fenced)
        except ValueError as error:
            return Score(0.0, f"the answer is no JSON: {error}", details={"errors": []})
        from referencing.exceptions import Unresolvable  # with jsonschema, which compiling has imported

        try:
            with time_limit(_SECONDS):
                errors = [
                    {"path": error.json_path, "message": excerpt(error.message, 300)}
                    for error in islice(validator.iter_errors(value), _MOST_ERRORS)
                ]
        except (TimeoutError, MemoryError):
            remedy = "make the repeats in its patterns possessive or bounded"
            return Score(None, f"the schema was not done with the answer in {_SECONDS:g} s; {remedy}")
        except regex.error as error:
            return Score(None, f"a pattern of the schema cannot be used: {error}")
        except (RecursionError, OverflowError, Unresolvable) as error:
            reason = f"the schema cannot be applied to this answer: {excerpt(str(error))}"
            return Score(None, reason, details={"json": where})
        details = {"json": where, "errors": errors}
        if not errors:
            return Score(1.0, f"{where} fits the schema", details=details)
        count = f"{_MOST_ERRORS} or more" if len(errors) == _MOST_ERRORS else str(len(errors))
        more = f" ({count} errors)" if len(errors) > 1 else ""
        return Score(0.0, f"{errors[0]['path']}: {excerpt(errors[0]['message'], 200)}{more}", details=details)


def _loaded(path: Path) -> Mapping[str, Any]:
    """Read a schema from a file. Raises ValueError."""
    try:
        schema = _schema(read_input(path, _MOST_BYTES).decode("utf-8"))
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error
    if schema is None:
        raise ValueError(f"{path} holds no JSON object")
    return schema


def _schema(value: Any) -> Mapping[str, Any] | None:
    """Return a mapping, or the JSON text of one; `true` and 5 are JSON, but answers rather than schemas."""
    if isinstance(value, str):
        try:
            value = _json(value)
        except ValueError:
            return None
    return value if isinstance(value, Mapping) else None


def _parsed(answer: str, fenced: bool) -> tuple[str, Any]:
    """Return where the answer has its JSON, and the value. Raises ValueError."""
    if not answer.strip():
        raise ValueError("it is empty")
    try:
        return "the answer", _json(answer)
    except ValueError:
        block = _fenced(answer) if fenced else None
        if block is None:
            raise
    return "the answer's JSON block", _json(block)


def _json(text: str) -> Any:
    """Read JSON by the letter, without Python's NaN. Raises ValueError."""

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no JSON")

    try:
        return json.loads(text, parse_constant=refuse, parse_float=_finite)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _finite(number: str) -> float:
    value = float(number)
    if math.isinf(value):
        raise ValueError(f"{excerpt(number)} is beyond all numbers")
    return value


def _fenced(answer: str) -> str | None:
    """Return what stands between the first line of ``` and json and the next of ```, or the end."""
    block: list[str] | None = None
    # Not splitlines: a text in JSON may hold other ends of lines.
    for line in answer.split("\n"):
        text = line.strip()
        if not text.startswith("```"):
            if block is not None:
                block.append(line)
        elif block is not None:
            break
        elif text.lstrip("`").strip().lower() == "json":
            block = []
    return None if block is None else "\n".join(block)
