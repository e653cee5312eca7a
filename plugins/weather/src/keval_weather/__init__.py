"""Weather for keval: an MCP server (`keval_weather.server`), its context, and the ground truth of weather questions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keval_weather.context import Weather

__all__ = ["Weather"]


def __getattr__(name: str) -> Any:
    # Imported when first used: the server's process, which trials wait for, has no use for the context.
    if name != "Weather":
        raise AttributeError(f"module 'keval_weather' has no attribute {name!r}")
    from keval_weather.context import Weather

    globals()[name] = Weather
    return Weather
