from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import pytest

from keval_weather.openweather import OpenWeather, open_openweather
from keval_weather.snapshot import open_source
from keval_weather.source import Current, UnknownCityError, WeatherError, WeatherSource

if TYPE_CHECKING:
    from tests.plugins.weather.conftest import FakeOpenWeather

KEY = "a-key-of-32-letters"
T = TypeVar("T")


def _ask(url: str, call: Callable[[OpenWeather], Awaitable[T]], key: str = KEY, max_wait: float = 10.0) -> T:
    async def ask() -> T:
        async with open_openweather(key, url, max_wait) as source:
            return await call(source)

    return asyncio.run(ask())


def test_current_weather_is_read_in_metric_units(openweather: FakeOpenWeather) -> None:
    found = _ask(openweather.url, lambda source: source.current("łódź"))

    expected: Current = {
        "city": "Łódź",
        "country": "XX",
        "temperature": 21.3,
        "feels_like": 20.9,
        "humidity": 64,
        "wind_speed": 3.6,
        "main_condition": "Rain",
        "description": "light rain",
        "units": "metric",
    }
    assert expected == found
    assert openweather.asked == [("/data/2.5/weather", {"q": "łódź", "appid": KEY, "units": "metric"})]


def test_three_hourly_steps_are_summed_up_by_the_citys_own_days(openweather: FakeOpenWeather) -> None:
    """The first step is 08:00 local time on the 16th: six steps that day (four of rain), then eight a day."""
    found = _ask(openweather.url, lambda source: source.forecast("Farville", 2))

    rain = {"main_condition": "Rain", "description": "light rain"}
    clear = {"main_condition": "Clear", "description": "sky"}
    days = [
        {"date": "2026-01-16", "min_temp": 10.0, "max_temp": 12.5, **rain},
        {"date": "2026-01-17", "min_temp": 10.6, "max_temp": 13.3, **clear},
    ]
    assert {"city": "Farville", "country": "XX", "units": "metric", "days": days} == found


def test_an_unknown_city_is_told_from_other_trouble(openweather: FakeOpenWeather) -> None:
    with pytest.raises(UnknownCityError, match="no city named 'Nowhere'"):
        _ask(openweather.url, lambda source: source.current("Nowhere"))


def test_a_refused_key_names_the_variable_to_set(openweather: FakeOpenWeather) -> None:
    with pytest.raises(WeatherError, match=r"refused the API key \(401\); set OPENWEATHER_API_KEY") as caught:
        _ask(openweather.url, lambda source: source.current("Oslo"), key="wrong-key")

    assert "wrong-key" not in str(caught.value)


@pytest.mark.parametrize(
    ("city", "message"),
    [
        ("Busyville", r"request limit is used up \(429\)"),
        ("Brokentown", "failed with status 502"),
        ("Oddtown", "cannot be read"),
        ("Textville", "cannot be read"),
    ],
)
def test_trouble_is_said_in_plain_words(openweather: FakeOpenWeather, city: str, message: str) -> None:
    with pytest.raises(WeatherError, match=message):
        _ask(openweather.url, lambda source: source.current(city))
    with pytest.raises(WeatherError, match=message):
        _ask(openweather.url, lambda source: source.forecast(city, 3))


def test_a_slow_answer_is_given_up(openweather: FakeOpenWeather) -> None:
    with pytest.raises(WeatherError, match=r"did not answer within 0\.1 s"):
        _ask(openweather.url, lambda source: source.current("Slowville"), max_wait=0.1)


def test_a_server_that_is_not_there_is_said_to_be_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"

    with pytest.raises(WeatherError, match=r"cannot be reached at http://127.* OPENWEATHER_BASE_URL"):
        _ask(url, lambda source: source.current("Oslo"))


def test_the_key_is_kept_out_of_the_log(openweather: FakeOpenWeather, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="httpx"):
        _ask(openweather.url, lambda source: source.current("Oslo"))

    assert "appid=***" in caplog.text
    assert KEY not in caplog.text


@pytest.mark.parametrize(
    ("environment", "expected"),
    [({}, "snapshot"), ({"OPENWEATHER_API_KEY": ""}, "snapshot"), ({"OPENWEATHER_API_KEY": KEY}, "openweather")],
)
def test_the_key_decides_which_source_is_used(environment: dict[str, str], expected: str) -> None:
    async def name() -> str:
        async with open_source(environment) as source:
            found: WeatherSource = source
            return found.name

    assert expected == asyncio.run(name())
