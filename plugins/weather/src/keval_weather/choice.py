"""Which source the weather comes from: the environment says."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from keval_weather.source import KEY_VARIABLE, URL_VARIABLE, WeatherSource

__all__ = ["open_source"]


@asynccontextmanager
async def open_source(environment: Mapping[str, str]) -> AsyncIterator[WeatherSource]:
    """Open the source that `environment` asks for: OpenWeather where its key is set, else the bundled snapshot."""
    if key := environment.get(KEY_VARIABLE):
        from keval_weather.openweather import BASE_URL, open_openweather  # imports httpx, which a snapshot never needs

        async with open_openweather(key, environment.get(URL_VARIABLE) or BASE_URL) as openweather:
            yield openweather
    else:
        from keval_weather.snapshot import load_snapshot  # reads the bundled file, which OpenWeather never needs

        yield load_snapshot()
