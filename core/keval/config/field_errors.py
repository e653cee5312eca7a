"""Field errors: the converter's tree of errors as a flat list, each with the path of its value."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import attrs
from cattrs.errors import (
    AttributeValidationNote,
    BaseValidationError,
    ForbiddenExtraKeysError,
    IterableValidationNote,
)

from keval.config.source import KeyPath
from keval.config.variables import Interpolated
from keval.errors import FieldError, suggestion
from keval.models import Model

__all__ = ["MAPPINGS", "SEQUENCES", "UNIONS", "field_errors", "shown", "type_name"]

UNIONS: tuple[Any, ...] = (Union, UnionType)
SEQUENCES: tuple[Any, ...] = (tuple, list, Sequence)
MAPPINGS: tuple[Any, ...] = (dict, Mapping)
"""The origins of types that are read as unions, lists and mappings."""


def field_errors(error: Exception, path: KeyPath, cls: Any) -> Iterator[FieldError]:
    """Unfold the converter's error tree; `cls` is the class that the data at `path` was structured into."""
    if isinstance(error, BaseValidationError):
        for inner in error.exceptions:
            note = next(
                (
                    n
                    for n in getattr(inner, "__notes__", ())
                    if isinstance(n, AttributeValidationNote | IterableValidationNote)
                ),
                None,
            )
            if note is None:
                yield from field_errors(inner, path, error.cl)
                continue
            step = note.name if isinstance(note, AttributeValidationNote) else note.index
            if isinstance(inner, KeyError) and isinstance(note, AttributeValidationNote):
                yield FieldError(path, f"the key {step!r} is missing; add `{step}:` with {type_name(note.type)}")
            else:
                yield from field_errors(inner, (*path, step), note.type)
    elif isinstance(error, ForbiddenExtraKeysError):
        known = [field.name for field in attrs.fields(error.cl) if field.init]
        for key in sorted(map(str, error.extra_fields)):
            hint = suggestion(key, known) or f"; known keys: {', '.join(known) or 'none'}"
            yield FieldError((*path, key), f"unknown key {key!r}{hint}", at_key=True)
    else:
        # attrs validators name their field first: "'days' must be >= 1: 0"
        named = re.match(r"(?:Length of )?'(\w+)' must", str(error))
        yield FieldError((*path, named[1]) if named else path, str(error))


def shown(value: Any) -> str:
    """Show a value within a message; one that came out of a variable, as it is written."""
    if isinstance(value, Interpolated) and (written := getattr(value, "written", None)) is not None:
        return f"the value of {written}"
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    if value is None:
        return "nothing"
    text = repr(str(value)) if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def type_name(wanted: Any) -> str:
    """Name a type in the words of a config's author."""
    names = {
        str: "a text", int: "a whole number", float: "a number", bool: "true or false",
        Path: "a path", Model: "a model (provider/name)", type(None): "nothing",
    }  # fmt: skip
    origin = get_origin(wanted)
    if wanted in names:
        return names[wanted]
    if origin is Literal:
        return " or ".join(map(str, get_args(wanted)))
    if origin in UNIONS:
        return " or ".join(dict.fromkeys(type_name(part) for part in get_args(wanted) if part is not type(None)))
    if origin in MAPPINGS or attrs.has(wanted):
        return "a mapping"
    if origin in SEQUENCES:
        return "a list"
    return getattr(wanted, "__name__", str(wanted))
