"""Sizes in bytes, as a config writes them: a number, or a text such as `20 MB`."""

from __future__ import annotations

import re
from typing import Any

import attrs

__all__ = ["is_size", "size"]

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
_WRITTEN = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)")


def size(written: int | str) -> int:
    """Return a size in bytes. Raises ValueError when it is none."""
    if isinstance(written, int):
        found: float = written
    else:
        match = _WRITTEN.fullmatch(written.strip())
        if match is None or match[2].upper() not in _UNITS:
            raise ValueError(f"expected a size such as 20 MB, got {written!r}")
        found = float(match[1]) * _UNITS[match[2].upper()]
    if found < 1:
        raise ValueError(f"expected a size of at least one byte, got {written!r}")
    return int(found)


def is_size(instance: object, attribute: attrs.Attribute[Any], value: int | str) -> None:
    """Check a field that holds a size."""
    size(value)
