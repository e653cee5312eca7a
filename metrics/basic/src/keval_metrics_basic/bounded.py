"""JSON Schema's keywords within a time limit: patterns by an engine that can be interrupted, and a check at each step.

The patterns of jsonschema are those of `re`, which a pattern such as `^(a+)+$` keeps busy for ever, Ctrl-C included.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeAlias

import regex

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

__all__ = ["bounded", "time_limit"]

Keyword: TypeAlias = Callable[[Any, Any, Any, Any], Any]

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
