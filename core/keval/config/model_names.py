"""Finding the provider of a model name that has none."""

from __future__ import annotations

from functools import cache

from keval import registry
from keval.errors import PluginError

__all__ = ["provider_of"]


@cache
def provider_of(name: str) -> str | None:
    """Return the model provider that a name such as `gpt-4o` belongs to, by the families that providers declare."""
    for component in registry.components("keval.models"):
        try:
            provider = registry.load(component)()
        except (PluginError, TypeError):  # a broken provider breaks only the runs that name it
            continue
        if any(name.startswith(family) for family in getattr(provider, "families", ())):
            return component.name
    return None
