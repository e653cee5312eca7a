"""What of a model request is compared with a recording, and what is not because it differs every time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import attrs
import orjson

from keval.records.cassettes import Volatile
from keval.records.models import ModelRequest, Wire

MARK = "[volatile]"
"""What stands in place of a volatile text."""


@attrs.frozen
class Compared:
    """A model request as it is compared: equal ones are the same request to a recording.

    `body` is its JSON without what is volatile; objects are equal in any order of their keys. A body that is no JSON is
    its text. Headers are not compared.
    """

    model: str
    wire: Wire
    method: str
    path: str
    body: Any = attrs.field(repr=False)


def canonical(request: ModelRequest, volatile: Iterable[Volatile] = ()) -> Compared:
    """Return what of a request is compared. Its secrets must have been replaced before, as the recording's have."""
    declared = tuple(volatile)
    try:
        body = orjson.loads(request.body)
    except orjson.JSONDecodeError:
        body = request.body.decode("utf-8", "replace")
    body, path = without_volatile(body, declared), without_volatile(request.path, declared)
    return Compared(request.model, request.wire, request.method, path, body)


def without_volatile(value: Any, volatile: Iterable[Volatile]) -> Any:
    """Return JSON, or a text, without the fields that are volatile, with a mark in place of such texts, and sorted."""
    fields, orders, patterns = _rules(tuple(volatile))
    for field in fields:
        value = _without(value, field)
    for path, key in orders:
        value = _sorted(value, path, key)
    return value if patterns is None else _marked(value, patterns)


@lru_cache
def _rules(
    volatile: tuple[Volatile, ...],
) -> tuple[Sequence[Sequence[str]], Sequence[tuple[Sequence[str], str]], re.Pattern[str] | None]:
    fields = [each.field.split(".") for each in volatile if each.field is not None]
    ways = [each.order.split(".") for each in volatile if each.order is not None]
    patterns = [f"(?:{each.pattern})" for each in volatile if each.pattern is not None]
    return fields, [(way[:-2], way[-1]) for way in ways], re.compile("|".join(patterns)) if patterns else None


def _without(value: Any, field: Sequence[str]) -> Any:
    """Return JSON without a field; a `*` in its path stands for every item of a list or object."""
    key, *rest = field
    if isinstance(value, list):
        if not rest:
            return [] if key == "*" else value
        return [_without(item, rest) for item in value] if key == "*" else value
    if not isinstance(value, dict) or (key != "*" and key not in value):
        return value
    if not rest:
        return {name: item for name, item in value.items() if key not in (name, "*")}
    return {name: _without(item, rest) if key in (name, "*") else item for name, item in value.items()}


def _sorted(value: Any, path: Sequence[str], key: str) -> Any:
    """Return JSON in which the items of the list at this path that have this key are sorted by it, in their places."""
    if not path:
        if not isinstance(value, list):
            return value
        places = [place for place, item in enumerate(value) if isinstance(item, dict) and key in item]
        items = sorted((value[place] for place in places), key=lambda item: str(item[key]))
        found = list(value)
        for place, item in zip(places, items, strict=True):
            found[place] = item
        return found
    first, *rest = path
    if isinstance(value, list):
        return [_sorted(item, rest, key) for item in value] if first == "*" else value
    if isinstance(value, dict):
        return {name: _sorted(item, rest, key) if first in (name, "*") else item for name, item in value.items()}
    return value


def _marked(value: Any, patterns: re.Pattern[str]) -> Any:
    if isinstance(value, str):
        return patterns.sub(MARK, value)
    if isinstance(value, list):
        return [_marked(item, patterns) for item in value]
    if isinstance(value, dict):
        return {name: _marked(item, patterns) for name, item in value.items()}
    return value
