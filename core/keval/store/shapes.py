"""Records as mappings of their fields, and back; the values must have the types that summaries and tables count on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import UnionType
from typing import Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

import attrs

__all__ = ["fields_of", "read_record", "shaped"]

T = TypeVar("T")

_FREE = frozenset({"result", "error", "reason", "message", "traceback"})
"""Fields that are only shown, and in which an adapter may have left something else than a text."""


class _Shape(NamedTuple):
    name: str
    types: tuple[type, ...]
    items: tuple[type, ...]


def fields_of(record: Any) -> dict[str, Any]:
    """Return the fields of a record by name, with their values as they are."""
    return {name: getattr(record, name) for name in _names(record.__class__)}


def read_record(kind: Callable[..., T], data: Mapping[str, Any]) -> T:
    """Make a record of its fields; unknown ones are left out.

    Raises TypeError: a field is lacking or has a wrong type.
    """
    try:
        return shaped(kind(**data))
    except TypeError:  # unknown keys are rare, so they are looked for only after an error
        known = {name: value for name, value in data.items() if name in _names(kind)}
        if len(known) == len(data):
            raise
        return shaped(kind(**known))


def shaped(record: T) -> T:
    """Return the record. Raises TypeError: one of its fields, or an item in it, has another type than it should."""
    kind: Any = record.__class__
    for name, types, items in _shapes(kind):
        value: Any = getattr(record, name)
        if not isinstance(value, types):
            raise TypeError(f"{name!r} has the value {value!r:.60}")
        if items and isinstance(value, tuple | list):
            for item in value:
                if not isinstance(item, items):
                    raise TypeError(f"{name!r} holds {item!r:.60}")
    return record


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in attrs.fields(kind))


@cache
def _shapes(kind: Any) -> tuple[_Shape, ...]:
    hints = get_type_hints(kind)
    names = [field.name for field in attrs.fields(kind) if field.name not in _FREE]
    shapes = (_Shape(name, _types(hints[name]), _items(hints[name])) for name in names)
    return tuple(shape for shape in shapes if object not in shape.types)


def _types(hint: Any) -> tuple[type, ...]:
    origin = get_origin(hint)
    if hint is Any:
        return (object,)
    if origin in {Union, UnionType}:
        return tuple(kind for part in get_args(hint) for kind in _types(part))
    if origin is Literal:
        return (str,)
    if origin is not None:
        return (Mapping,) if issubclass(origin, Mapping) else (tuple, list)
    if hint in {int, float}:
        return (int, float)
    return (hint,) if isinstance(hint, type) else (object,)


def _items(hint: Any) -> tuple[type, ...]:
    """Return the types of a list's items, as far as they are plain; records are checked when they are read."""
    if get_origin(hint) in {Union, UnionType}:
        return tuple(kind for part in get_args(hint) for kind in _items(part))
    origin = get_origin(hint)
    if not isinstance(origin, type) or not issubclass(origin, Sequence):
        return ()
    first = get_args(hint)[0]
    return _types(first) if first in {str, int, float} else ()
