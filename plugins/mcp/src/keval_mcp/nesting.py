"""How deeply JSON is nested: beyond a bound, some reader or writer of it fails, each in its own way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MOST_NESTED = 100
"""Lists and objects in each other. Frameworks fail from about 150 on, the MCP SDK below 300, and orjson writes 254."""


def is_too_deep(value: Any) -> bool:
    """Return whether more than `MOST_NESTED` lists and mappings are in each other."""
    level = [value]
    for _ in range(MOST_NESTED):
        holders = [each for each in level if isinstance(each, Mapping | list | tuple)]
        if not holders:
            return False
        level = [item for each in holders for item in (each.values() if isinstance(each, Mapping) else each)]
    return any(isinstance(each, Mapping | list | tuple) for each in level)
