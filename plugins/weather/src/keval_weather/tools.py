"""The weather tools as an MCP server: what they are called, what they take, and whose state they touch."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import Field

from keval import KevalError
from keval_weather.preferences import Preferences, PreferenceStore
from keval_weather.scope import Scope, find_scope
from keval_weather.source import MAX_DAYS, Current, Forecast, WeatherError, WeatherSource

__all__ = ["build_server"]

_City = Annotated[str, Field(description="Name of the city, for example Helsinki, New York or São Paulo")]
_Days = Annotated[
    int,
    Field(
        description=f"How many days, 1 to {MAX_DAYS}; the first is today, so tomorrow takes 2",
        json_schema_extra={"minimum": 1, "maximum": MAX_DAYS},  # published; checked below in plainer words
    ),
]
_User = Annotated[str, Field(description="Id of the user", max_length=200)]
_Insight = Annotated[str | None, Field(description="What was learned about the user, in one sentence", max_length=1000)]
_READS = ToolAnnotations(read_only_hint=True)
_WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True)


def _flag(meaning: str) -> Any:
    return Field(description=f"{meaning}; leave out to change nothing")


def build_server(source: WeatherSource, store: PreferenceStore) -> MCPServer:
    """Build the server; it tells the weather from `source` and keeps what it learns in `store`."""
    server = MCPServer(
        "keval-weather",
        instructions="Current weather, forecasts and the user's weather preferences. All figures are metric.",
        log_level="WARNING",
    )

    @server.tool(annotations=_READS)
    async def get_current_weather(city: _City) -> Current:
        """Get the current weather in a city: temperature in °C, humidity, wind and conditions."""
        with _explained():
            return await source.current(city)

    @server.tool(annotations=_READS)
    async def get_weather_forecast(city: _City, days: _Days = 3) -> Forecast:
        """Get the weather forecast for a city by day: lowest and highest temperature in °C and conditions."""
        with _explained():
            if not 1 <= days <= MAX_DAYS:
                raise WeatherError(f"a forecast covers 1 to {MAX_DAYS} days, not {days}; ask for fewer days")
            return await source.forecast(city, days)

    @server.tool(annotations=_READS)
    async def get_user_preferences(user_id: _User, ctx: Context) -> Preferences:
        """Get what is known about a user's weather preferences, such as disliking the cold."""
        with _explained():
            return store.get(_scope(ctx), user_id)

    @server.tool(annotations=_WRITES)
    async def update_user_preferences_from_insight(
        user_id: _User,
        *,
        ctx: Context,
        insight_text: _Insight = None,
        dislikes_cold: Annotated[bool | None, _flag("Whether the user dislikes cold weather")] = None,
        dislikes_heat: Annotated[bool | None, _flag("Whether the user dislikes hot weather")] = None,
        dislikes_rain: Annotated[bool | None, _flag("Whether the user dislikes rain")] = None,
        dislikes_wind: Annotated[bool | None, _flag("Whether the user dislikes wind")] = None,
        prefers_sunny: Annotated[bool | None, _flag("Whether the user prefers sunny weather")] = None,
        prefers_indoor: Annotated[bool | None, _flag("Whether the user prefers to be indoors")] = None,
        outdoor_activities: Annotated[bool | None, _flag("Whether the user enjoys outdoor activities")] = None,
        sensitive_to_weather: Annotated[bool | None, _flag("Whether the weather affects how the user feels")] = None,
    ) -> Preferences:
        """Remember a preference that the user has just stated, such as hating the cold or loving hikes."""
        stated = {
            "dislikes_cold": dislikes_cold,
            "dislikes_heat": dislikes_heat,
            "dislikes_rain": dislikes_rain,
            "dislikes_wind": dislikes_wind,
            "prefers_sunny": prefers_sunny,
            "prefers_indoor": prefers_indoor,
            "outdoor_activities": outdoor_activities,
            "sensitive_to_weather": sensitive_to_weather,
        }
        flags = {name: value for name, value in stated.items() if value is not None}
        with _explained():
            if not (flags or insight_text):
                raise WeatherError("there is nothing to remember; give insight_text or at least one preference")
            return store.learn(_scope(ctx), user_id, flags, insight_text)

    return server


def _scope(ctx: Context) -> Scope:
    return find_scope(dict(ctx.request_context.meta or {}), ctx.headers or {}, os.environ)


@contextmanager
def _explained() -> Iterator[None]:
    """Hand an explained error to the model as the tool's error."""
    try:
        yield
    except KevalError as error:
        raise ToolError(str(error)) from error
