"""Where the weather comes from: what a source offers, and the JSON it gives."""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias

# The MCP SDK makes output schemas of these types and, before Python 3.12, cannot read typing's own inside another.
from typing_extensions import TypedDict

from keval import KevalError

__all__ = [
    "KEY_VARIABLE",
    "MAX_DAYS",
    "URL_VARIABLE",
    "Current",
    "Day",
    "Forecast",
    "SourceName",
    "UnknownCityError",
    "WeatherError",
    "WeatherSource",
]

KEY_VARIABLE = "OPENWEATHER_API_KEY"
URL_VARIABLE = "OPENWEATHER_BASE_URL"
MAX_DAYS = 5
"""How far a forecast reaches, the day it is made included."""

SourceName: TypeAlias = Literal["snapshot", "openweather"]


class WeatherError(KevalError):
    """The weather cannot be told; the message says why and what to do."""


class UnknownCityError(WeatherError):
    """The source knows no city of this name."""


class Current(TypedDict):
    """The weather now: temperatures in °C, humidity in percent, wind in m/s, OpenWeather's condition words."""

    city: str
    country: str
    temperature: float
    feels_like: float
    humidity: int
    wind_speed: float
    main_condition: str
    description: str
    units: Literal["metric"]


class Day(TypedDict):
    """One day of a forecast: a local date as `YYYY-MM-DD`, temperatures in °C."""

    date: str
    min_temp: float
    max_temp: float
    main_condition: str
    description: str


class Forecast(TypedDict):
    """The coming days in order, today first."""

    city: str
    country: str
    units: Literal["metric"]
    days: list[Day]


class WeatherSource(Protocol):
    """Tells the weather of a city by its name."""

    @property
    def name(self) -> SourceName:
        """What the source is called in a run's facts."""
        ...

    async def current(self, city: str) -> Current:
        """Return the weather now.

        Raises:
            UnknownCityError: there is no such city.
            WeatherError: the source cannot be asked.
        """
        ...

    async def forecast(self, city: str, days: int) -> Forecast:
        """Return the weather of up to `days` days, which is 1 to MAX_DAYS; raises what `current` does."""
        ...
