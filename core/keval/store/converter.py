"""Manifest and summary as JSON, and back. Records with a field for unknown keys keep them; others leave them out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import attrs
import orjson

from keval.config.structure import structure
from keval.errors import RunError
from keval.store.jsonl import dump

__all__ = ["from_plain", "to_json", "to_plain"]

T = TypeVar("T")


def to_plain(value: Any) -> Any:
    """Return a record, with the records in it, as plain data. The open end of a scale is `None`."""
    if attrs.has(type(value)):
        plain: dict[str, Any] = {}
        unknown: Mapping[str, Any] = {}
        for field in attrs.fields(type(value)):
            if field.metadata.get("unknown_keys"):
                unknown = getattr(value, field.name)
            else:
                plain[field.name] = to_plain(getattr(value, field.name))
        return {**plain, **unknown}
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [to_plain(item) for item in value]
    return None if isinstance(value, float) and math.isinf(value) else value


def to_json(record: Any) -> bytes:
    """Return a record as indented JSON that ends in a newline."""
    # Two passes: the first replaces what JSON cannot hold, the second indents.
    return orjson.dumps(orjson.loads(dump(to_plain(record))), option=orjson.OPT_INDENT_2) + b"\n"


def from_plain(cls: type[T], data: Any, path: Path) -> T:
    """Structure plain data into a record. Raises RunError with the file, the first error and the number of others."""
    record, errors = structure(cls, data, (), Path(), variables=False, strict=False)
    if record is None:
        first = errors[0]
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        where = ".".join(map(str, first.path))
        raise RunError(f"{path} is damaged: {where + ': ' if where else ''}{first.message}{more}; restore the file")
    return record
