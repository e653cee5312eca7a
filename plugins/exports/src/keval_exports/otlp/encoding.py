"""Values, times and ids in OTLP's JSON: its mapping of Protocol Buffers, with ids in hexadecimal."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import Any

__all__ = ["attributes", "hex_id", "nanoseconds"]


def attributes(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return attributes, without those that are `None`."""
    return [{"key": key, "value": _any_value(value)} for key, value in values.items() if value is not None]


def nanoseconds(seconds: float) -> str:
    """Return a Unix time in nanoseconds; 64-bit numbers are texts in JSON."""
    return str(round(seconds * 1_000_000_000))


def hex_id(size: int, *parts: str) -> str:
    """Return an id of so many bytes, the same for the same parts."""
    # A length before each part, as the parts may hold any separator.
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[: 2 * size]


def _any_value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value if math.isfinite(value) else str(value).replace("inf", "Infinity")}
    if isinstance(value, Mapping):
        return {"kvlistValue": {"values": attributes(value)}}
    if isinstance(value, list | tuple):
        return {"arrayValue": {"values": [_any_value(item) for item in value]}}
    return {"stringValue": str(value)}
