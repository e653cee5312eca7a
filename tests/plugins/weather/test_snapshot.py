from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from pydantic import TypeAdapter

from keval_weather.snapshot import load_snapshot
from keval_weather.source import Current, Forecast, UnknownCityError, fold

DAY = date(2026, 1, 15)
README = Path(__file__).parents[3] / "plugins/weather/README.md"


def _current(city: str) -> Current:
    return load_snapshot().current(city)


def _forecast(city: str, days: int = 5) -> Forecast:
    return load_snapshot().forecast(city, days)


def test_it_has_many_cities_in_all_weathers() -> None:
    found = [_current(name) for name in load_snapshot().names]
    cities = {current["city"] for current in found}
    temperatures = [current["temperature"] for current in found]

    assert f"snapshot of {len(cities)} cities" in README.read_text(encoding="utf-8")
    assert {"New York", "São Paulo", "Łódź", "Zürich"} <= cities
    assert {"Rain", "Drizzle", "Snow", "Clear", "Clouds", "Mist", "Fog", "Haze", "Thunderstorm"} == {
        current["main_condition"] for current in found
    }
    assert min(temperatures) < -30
    assert max(temperatures) > 30


@pytest.mark.parametrize("name", load_snapshot().names)
def test_every_city_is_whole_and_agrees_with_itself(name: str) -> None:
    current, forecast = _current(name), _forecast(name)
    today = forecast["days"][0]

    assert current == TypeAdapter(Current).validate_python(current, strict=True)
    assert forecast == TypeAdapter(Forecast).validate_python(forecast, strict=True)
    assert [(DAY + timedelta(days=offset)).isoformat() for offset in range(5)] == [
        day["date"] for day in forecast["days"]
    ]
    assert all(day["min_temp"] <= day["max_temp"] for day in forecast["days"])
    assert today["min_temp"] <= current["temperature"] <= today["max_temp"]
    assert today["main_condition"] == current["main_condition"]


def test_no_two_cities_share_a_name() -> None:
    names = load_snapshot().names

    assert len(names) == len(set(map(fold, names)))


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("helsinki", "Helsinki"),
        ("NEW YORK", "New York"),
        ("nyc", "New York"),
        ("New York City", "New York"),
        ("Reykjavik, Iceland", "Reykjavík"),
        ("København", "Copenhagen"),
        ("Dhaka, Bangladesh", "Dhaka"),
        ("Quebec", "Québec"),
        ("montreal, quebec", "Montréal"),
        ("Mallorca", "Palma"),
        ("Sao Paulo", "São Paulo"),
        ("lodz", "Łódź"),
        ("Zuerich", "Zürich"),
        ("münchen", "Munich"),
        ("Paris, France", "Paris"),
        ("paris,fr", "Paris"),
        ("New York, NY, USA", "New York"),
        ("London,", "London"),
        ("Tokyo", "Tokyo"),  # which the error offers
    ],
)
def test_a_city_is_found_however_it_is_written(asked: str, expected: str) -> None:
    assert expected == _current(asked)["city"]


@pytest.mark.parametrize("asked", ["Atlantis", "Paris, Texas", "", ",", "Hel", "Helsinki Airport"])
def test_an_unknown_city_is_named_with_some_that_are_known(asked: str) -> None:
    with pytest.raises(UnknownCityError, match=r"no city named .* such as Helsinki") as caught:
        _forecast(asked)

    assert repr(asked) in str(caught.value)


def test_what_a_caller_does_to_an_answer_stays_with_it() -> None:
    _current("Oslo")["temperature"] = 99.0
    _forecast("Oslo")["days"][0]["max_temp"] = 99.0

    assert _current("Oslo")["temperature"] < 0
    assert _forecast("Oslo")["days"][0]["max_temp"] < 0


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("São Paulo", "sao paulo"),
        ("SAO-PAULO", "sao paulo"),
        ("Łódź", "lodz"),
        ("Tromsø", "tromso"),
        ("İstanbul", "istanbul"),
        ("  New   York ", "new york"),
        ("St. John's", "st john s"),
        ("東京", "東京"),
        ("", ""),
    ],
)
def test_spellings_of_one_name_fold_to_one(written: str, expected: str) -> None:
    assert expected == fold(written)


@given(st.text())
def test_folding_twice_changes_nothing_more(text: str) -> None:
    once = fold(text)

    assert once == fold(once)
