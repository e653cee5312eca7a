"""The characteristics that agent adapters ship, by the adapter's name."""

from __future__ import annotations

import attrs

from keval import registry
from keval.errors import PluginError
from keval.records import Characteristics

__all__ = ["shipped_characteristics"]


def shipped_characteristics(agent: str) -> Characteristics:
    """The characteristics that the agent plugin of that name has by default. Raises ValueError when there are none."""
    try:
        plugin = registry.load(registry.find("keval.agents", agent))
    except PluginError as error:
        remedy = "install the adapter that ships the table, or give the characteristics key by key"
        raise ValueError(f"{error} ({remedy})") from error
    field = attrs.fields_dict(plugin).get("characteristics") if attrs.has(plugin) else None
    shipped = field.default if field else None
    if not isinstance(shipped, Characteristics):
        raise ValueError(f"the agent {agent!r} says nothing of its framework's characteristics; give them key by key")
    return shipped
