"""Tool results: what a tool returned, whatever envelope a framework put around it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import orjson

from keval_gateway import ChatMessage

_FAILED = re.compile(r"^\W*(?:error\b|exception\b|traceback\b|failed\b|function failed|unknown tool)", re.IGNORECASE)

_ALIASES = {
    "temperature": ("temperature", "temp", "temp_c", "temperature_c", "temperature_celsius"),
    "feels_like": ("feels_like", "feelslike", "feelslike_c", "apparent_temperature"),
    "humidity": ("humidity",),
    "wind_speed": ("wind_speed", "wind", "windspeed"),
    "condition": ("main_condition", "condition", "conditions", "main"),
    "description": ("description", "summary"),
    "city": ("city", "location", "place", "name"),
    "low": ("min_temp", "temp_min", "temperature_min", "low", "min"),
    "high": ("max_temp", "temp_max", "temperature_max", "high", "max"),
    "date": ("date", "day"),
}


@attrs.frozen
class CurrentWeather:
    """The weather now, in °C and m/s; `None` where the tool did not say."""

    city: str | None
    temperature: float
    feels_like: float | None
    humidity: float | None
    wind_speed: float | None
    condition: str
    description: str


@attrs.frozen
class DayWeather:
    """A day of a forecast, in °C."""

    city: str | None
    date: str
    low: float
    high: float
    condition: str
    description: str


@attrs.frozen
class Reading:
    """A tool's result: `error` when it failed, else `data`, which is parsed JSON or a text."""

    data: Any = None
    error: str | None = None
    current: CurrentWeather | None = None
    days: tuple[DayWeather, ...] = ()


def read(message: ChatMessage) -> Reading:
    """Read a tool message."""
    failed, data = _unwrapped(message.text)
    text = data if isinstance(data, str) else ""
    if isinstance(data, Mapping) and data.get("error"):
        failed, text = True, _said(data["error"])
    if failed or message.error or _FAILED.match(text):
        return Reading(error=text or _said(data) or "the tool failed without a word")
    return Reading(data, None, _current(data), tuple(_days(data)))


def _unwrapped(value: Any) -> tuple[bool, Any]:
    """Take the envelopes off a result; returns whether one of them said that it failed, and what was inside."""
    if isinstance(value, str):
        try:
            inner = orjson.loads(value)
        except orjson.JSONDecodeError:
            return False, value
        return _unwrapped(inner) if isinstance(inner, dict | list) else (False, inner)
    if isinstance(value, list) and value and all(isinstance(part, Mapping) and "text" in part for part in value):
        return _unwrapped("\n".join(str(part["text"]) for part in value))
    if isinstance(value, Mapping):
        failed = bool(value.get("isError") or value.get("is_error"))
        for key in ("structuredContent", "structured_content", "content", "result", "output"):
            inner = value.get(key)
            envelope = key != "result" or len(value) == 1
            if (
                inner
                and envelope
                and (key not in ("content", "output") or not isinstance(inner, str) or len(value) < 3)
            ):
                deeper, data = _unwrapped(inner)
                return failed or deeper, data
        return failed, value
    return False, value


def _said(value: Any) -> str:
    if isinstance(value, Mapping):
        return _said(value.get("message") or value.get("error") or next(iter(value.values()), ""))
    return "" if value is None else str(value)


def _flat(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the scalars of an object and of the objects in it; the outer ones win."""
    found: dict[str, Any] = {}
    for key, value in data.items():
        if isinstance(value, list) and len(value) == 1:
            value = value[0]  # noqa: PLW2901 - a list of one, as OpenWeather's `weather`, is its only item
        if isinstance(value, Mapping):
            for inner, scalar in _flat(value).items():
                found.setdefault(inner, scalar)
        elif isinstance(value, str | int | float):
            found[key.lower()] = value
    return found


def _number(flat: Mapping[str, Any], field: str) -> float | None:
    for alias in _ALIASES[field]:
        value = flat.get(alias)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    return None


def _word(flat: Mapping[str, Any], field: str) -> str:
    return next((str(flat[alias]) for alias in _ALIASES[field] if isinstance(flat.get(alias), str)), "")


def _current(data: Any) -> CurrentWeather | None:
    if not isinstance(data, Mapping):
        return None
    flat = _flat(data)
    temperature = _number(flat, "temperature")
    if temperature is None:
        return None
    return CurrentWeather(
        _word(flat, "city") or None,
        temperature,
        _number(flat, "feels_like"),
        _number(flat, "humidity"),
        _number(flat, "wind_speed"),
        _word(flat, "condition") or _word(flat, "description"),
        _word(flat, "description") or _word(flat, "condition").lower(),
    )


def _days(data: Any, city: str | None = None) -> Iterator[DayWeather]:
    if isinstance(data, Mapping):
        named = _word({key.lower(): value for key, value in data.items()}, "city") or city
        flat = _flat(data)
        low, high, date = _number(flat, "low"), _number(flat, "high"), _word(flat, "date")
        if low is not None and high is not None and date:
            condition = _word(flat, "condition") or _word(flat, "description")
            yield DayWeather(named, date, low, high, condition, _word(flat, "description") or condition.lower())
            return
        for value in data.values():
            yield from _days(value, named)
    elif isinstance(data, list):
        for item in data:
            yield from _days(item, city)
