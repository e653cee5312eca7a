"""JSON Schema: scores whether an answer is JSON that fits a schema, within a time limit."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs
import regex

from keval import Score, Trial
from keval.plugin import read_input
from keval_metrics_basic.text import NO_TRANSCRIPT, excerpt, is_place, listed, no_reference, value_at

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

Keyword: TypeAlias = Callable[[Any, Any, Any, Any], Any]

# Beside the calls, as jsonschema hands keywords nothing of ours; each thread that scores has its own.
_deadline: ContextVar[float] = ContextVar("_deadline")


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Let validators that `bounded` returned work this long; then they raise TimeoutError."""
    token = _deadline.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _deadline.reset(token)


def bounded(draft: Any) -> type[Validator]:
    """Return the validator class of a draft, with keywords that keep to `time_limit`."""
    from jsonschema.validators import extend  # takes 40 ms, as in `schemas`

    own: dict[str, Keyword] = {"pattern": _pattern, "patternProperties": _pattern_properties}
    if additional := draft.VALIDATORS.get("additionalProperties"):
        own["additionalProperties"] = _without_matching(additional)
    keywords = {name: _checked(own.get(name, keyword)) for name, keyword in draft.VALIDATORS.items()}
    limited: type[Validator] = extend(draft, keywords)  # type: ignore[no-untyped-call]
    return limited


def _remaining() -> float:
    left = _deadline.get() - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _found(pattern: str, text: str) -> bool:
    # Not `re`, which cannot be interrupted.
    return regex.search(pattern, text, timeout=_remaining()) is not None


def _checked(keyword: Keyword) -> Keyword:
    def checked(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        _remaining()
        yield from keyword(validator, value, instance, schema) or ()

    return checked


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if validator.is_type(instance, "string") and not _found(pattern, instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Mapping[str, Any], instance: Any, schema: Any) -> Iterator[Any]:
    if validator.is_type(instance, "object"):
        for pattern, part in patterns.items():
            for key, value in instance.items():
                if _found(pattern, key):
                    yield from validator.descend(value, part, path=key, schema_path=pattern)


def _without_matching(keyword: Keyword) -> Keyword:
    """Hand `additionalProperties` only what no pattern matches, so that it need not match patterns itself."""

    def narrowed(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
        patterns = schema.get("patternProperties")
        if patterns and validator.is_type(instance, "object"):
            instance = {key: item for key, item in instance.items() if not any(_found(each, key) for each in patterns)}
            schema = {name: part for name, part in schema.items() if name != "patternProperties"}
        return keyword(validator, value, instance, schema)

    return narrowed


_PATTERNS = '"patternProperties"'


class SchemaMisfitError(ValueError):
    """What was given as a schema is none, or cannot be used."""


def compiled(schema: Mapping[str, Any]) -> Validator:
    """Return a validator of a schema, by its `$schema` or for draft 2020-12. Raises SchemaMisfitError."""
    try:
        # As a text, since a mapping cannot be the key of a cache.
        return _compiled(json.dumps(schema))
    except SchemaMisfitError:
        raise
    except RecursionError as error:
        raise SchemaMisfitError("it is nested too deeply") from error
    except (TypeError, ValueError) as error:
        raise SchemaMisfitError(f"it cannot be used: {excerpt(str(error), 200)}") from error


@lru_cache(maxsize=128)
def _compiled(text: str) -> Validator:
    # These take 40 ms, which only this metric needs.
    from jsonschema import Draft202012Validator, FormatChecker, SchemaError
    from jsonschema.validators import validator_for
    from referencing import Registry, Resource
    from referencing.jsonschema import DRAFT202012

    schema = json.loads(text)
    latest: Any = Draft202012Validator
    dialect = schema.get("$schema", latest.META_SCHEMA["$schema"])
    chosen: Any = validator_for({"$schema": dialect}, default=latest) if isinstance(dialect, str) else latest
    if chosen.META_SCHEMA["$schema"].rstrip("#") != str(dialect).rstrip("#"):
        raise SchemaMisfitError(f"its $schema {excerpt(str(dialect))!r} is no known draft of JSON Schema")
    if schema and not schema.keys() & chosen.VALIDATORS.keys():
        raise SchemaMisfitError(f"it checks nothing, having only {listed(map(excerpt, schema))}")
    try:
        # Patterns are checked, too, so that one which is none is told before anything runs.
        chosen.check_schema(schema, format_checker=FormatChecker(["regex"]))
    except SchemaError as error:
        raise SchemaMisfitError(f"at {error.json_path}: {excerpt(error.message, 200)}") from error
    # An empty registry fetches nothing, where jsonschema's own asks the network.
    registry: Registry[Any] = Registry()
    resource = Resource.from_contents(schema, default_specification=DRAFT202012)
    for reference in _lost_references(resource, registry.resolver_with_root(resource)):
        raise SchemaMisfitError(
            f"it refers to {excerpt(reference)!r}, which it does not hold; put that under $defs, as nothing is fetched"
        )
    # `unevaluatedProperties` matches the patterns by itself, without a time limit.
    if "unevaluatedProperties" in chosen.VALIDATORS and '"unevaluatedProperties"' in text and _PATTERNS in text:
        raise SchemaMisfitError("it has both patternProperties and unevaluatedProperties; write additionalProperties")
    # With `$schema` a part that refers to the whole would be checked by the draft's own class, without a time limit.
    whole = {name: part for name, part in schema.items() if name != "$schema"}
    validator: Validator = bounded(chosen)(whole, registry=registry)
    return validator


def _lost_references(resource: Any, resolver: Any) -> Iterator[str]:
    """Yield each reference of a schema and its parts that leads nowhere."""
    from referencing.exceptions import Unresolvable

    inside = resolver.in_subresource(resource)
    if isinstance(resource.contents, Mapping):
        for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
            reference = resource.contents.get(keyword)
            if isinstance(reference, str):
                try:
                    inside.lookup(reference)
                except Unresolvable:
                    yield reference
    for part in resource.subresources():
        yield from _lost_references(part, inside)


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
        block = _FENCED.search(answer) if fenced else None
        if block is None:
            raise
    return "the answer's JSON block", _json(block[1])


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
    # Python reads 1e999 as infinity, which JSON does not have.
    if math.isinf(value):
        raise ValueError(f"{excerpt(number)} is beyond all numbers")
    return value


_FENCED = re.compile(
    r"^[^\S\n]*```+[^\S\n]*json[^\S\n]*$(.*?)(?:^[^\S\n]*```|\Z)", re.MULTILINE | re.DOTALL | re.IGNORECASE
)
"""What stands between the first line of ``` and json and the next of ```, or the end; only a line feed ends a line."""
