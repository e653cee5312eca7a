"""OpenWeather's API as a source: current weather, and its three-hourly forecast summed up by day."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta, timezone
from itertools import groupby, islice
from typing import Any

import attrs
import httpx

from keval_weather.source import (
    KEY_VARIABLE,
    URL_VARIABLE,
    Current,
    Day,
    Forecast,
    SourceName,
    UnknownCityError,
    WeatherError,
)

BASE_URL = "https://api.openweathermap.org"
_KEY_IN_URL = re.compile(r"(?<=appid=)[^&\s]+")


@attrs.frozen
class OpenWeather:
    """The weather of any city, from https://openweathermap.org/current and https://openweathermap.org/forecast5."""

    _client: httpx.AsyncClient

    @property
    def name(self) -> SourceName:
        return "openweather"

    async def current(self, city: str) -> Current:
        """Ask for the weather now; raises UnknownCityError or WeatherError."""
        body = await self._get("/data/2.5/weather", city)
        try:
            return Current(
                city=body["name"],
                country=body["sys"].get("country", ""),
                temperature=_tenths(body["main"]["temp"]),
                feels_like=_tenths(body["main"]["feels_like"]),
                humidity=round(body["main"]["humidity"]),
                wind_speed=_tenths(body["wind"]["speed"]),
                main_condition=body["weather"][0]["main"],
                description=body["weather"][0]["description"],
                units="metric",
            )
        except (AttributeError, IndexError, KeyError, TypeError) as error:
            raise _unreadable(error) from error

    async def forecast(self, city: str, days: int) -> Forecast:
        """Ask for the forecast and sum it up by the city's own days; raises UnknownCityError or WeatherError."""
        body = await self._get("/data/2.5/forecast", city)
        try:
            zone = timezone(timedelta(seconds=body["city"]["timezone"]))
            by_date = groupby(
                body["list"], lambda step: datetime.fromtimestamp(step["dt"], UTC).astimezone(zone).date()
            )
            return Forecast(
                city=body["city"]["name"],
                country=body["city"].get("country", ""),
                units="metric",
                days=[_day(date.isoformat(), steps) for date, steps in islice(by_date, days)],
            )
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise _unreadable(error) from error

    async def _get(self, path: str, city: str) -> Any:
        try:
            response = await self._client.get(path, params={"q": city})
        except httpx.TimeoutException as error:
            raise WeatherError(
                f"OpenWeather did not answer within {self._client.timeout.read:g} s; try again later"
            ) from error
        except httpx.RequestError as error:
            raise WeatherError(
                f"OpenWeather cannot be reached at {self._client.base_url}: {type(error).__name__};"
                f" check the network and {URL_VARIABLE}"
            ) from error
        if not response.is_success:
            raise _refusal(response, city)
        try:
            return response.json()
        except ValueError as error:
            raise _unreadable(error) from error


@asynccontextmanager
async def open_openweather(key: str, base_url: str = BASE_URL, max_wait: float = 10.0) -> AsyncIterator[OpenWeather]:
    """Open the source with an API key; every request gives up after `max_wait` seconds."""
    logging.getLogger("httpx").addFilter(_without_key)
    parameters = {"appid": key, "units": "metric"}
    async with httpx.AsyncClient(base_url=base_url, params=parameters, timeout=max_wait) as client:
        yield OpenWeather(client)


def _without_key(record: logging.LogRecord) -> bool:
    """Hide the API key, which OpenWeather wants in the URL, where httpx logs that URL."""
    record.msg, record.args = _KEY_IN_URL.sub("***", record.getMessage()), None
    return True


def _refusal(response: httpx.Response, city: str) -> WeatherError:
    """Say in plain words why OpenWeather answered with an error status."""
    match response.status_code:
        case 401:
            return WeatherError(f"OpenWeather refused the API key (401); set {KEY_VARIABLE} to a valid, active key")
        case 404:
            return UnknownCityError(f"OpenWeather knows no city named {city!r} (404); check the spelling")
        case 429:
            return WeatherError("OpenWeather's request limit is used up (429); wait before asking again")
        case status:
            return WeatherError(f"OpenWeather failed with status {status}; try again later")


def _unreadable(error: Exception) -> WeatherError:
    return WeatherError(f"OpenWeather's answer cannot be read ({type(error).__name__}: {error}); check {URL_VARIABLE}")


def _day(date: str, steps: Iterable[Mapping[str, Any]]) -> Day:
    """Sum up one day: the extremes, and the condition it has most often, the earlier one of equals."""
    entries = list(steps)
    conditions = Counter(entry["weather"][0]["main"] for entry in entries)
    main, _ = conditions.most_common(1)[0]
    descriptions = Counter(
        entry["weather"][0]["description"] for entry in entries if entry["weather"][0]["main"] == main
    )
    return Day(
        date=date,
        min_temp=_tenths(min(entry["main"]["temp_min"] for entry in entries)),
        max_temp=_tenths(max(entry["main"]["temp_max"] for entry in entries)),
        main_condition=main,
        description=descriptions.most_common(1)[0][0],
    )


def _tenths(value: float) -> float:
    return round(float(value), 1)
