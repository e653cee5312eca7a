"""Finding days in prose and in a forecast, and reading the forecast out of a sample's facts."""

from __future__ import annotations

from typing import Any

import pytest

from keval_metrics_weather.reading.times import day_name, times
from keval_metrics_weather.reading.words import read
from keval_metrics_weather.truth import Day, Truth, truth_of


def forecast(*dates: str | None) -> Truth:
    return Truth("Helsinki", None, frozenset(), tuple(Day({"date": date}) for date in dates))


THURSDAY_TO_MONDAY = forecast(*(f"2026-06-{day}" for day in range(18, 23)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It's 15 °C now and 20 °C tomorrow", ["now", "+1"]),
        ("at the moment", ["now"]),
        ("the current temperature", ["now"]),
        ("the current weather forecast, against the current", []),
        ("the day after tomorrow", ["+2"]),
        ("in two days", ["+2"]),
        ("Day 2: rain", ["+1"]),
        ("Sat: 20, Sun: 22", ["weekday 5", "weekday 6"]),
        ("he sat in the sun", []),
        ("June 19th", ["06-19"]),
        ("2026-06-19", ["06-19"]),
        ("you may take 5", []),
        ("May 5", ["05-05"]),
        ("a 5-day forecast", ["several days"]),
        ("this evening", ["tonight"]),
        ("today, tomorrow and the day after", ["today", "+1", "+2"]),
        ("clear on the third day, rain on the fourth", ["+2", "+3"]),
        ("on the fourth of July", []),
        ("last week, two days ago", ["past", "past"]),
    ],
)
def test_days_are_named_in_many_ways(text: str, expected: list[str]) -> None:
    assert expected == [mention.day for mention in times(read(text))]


@pytest.mark.parametrize(
    ("day", "expected"),
    [
        ("now", (0,)),
        ("+1", (1,)),
        ("+7", ()),
        ("weekday 5", (2,)),
        ("weekday 2", ()),
        ("weekend", (2, 3)),
        ("06-21", (3,)),
        ("07-21", ()),
        ("several days", (0, 1, 2, 3, 4)),
    ],
)
def test_a_day_is_looked_up_in_the_forecasts_own_dates(day: str, expected: tuple[int, ...]) -> None:
    assert expected == THURSDAY_TO_MONDAY.days_meant(day)


def test_a_day_is_shown_as_people_say_it() -> None:
    shown = [day_name(day) for day in ("+1", "+3", "weekday 5", "today", "06-21")]

    assert ["tomorrow", "in 3 days", "Saturday", "today", "06-21"] == shown


def test_days_without_dates_are_known_by_their_place() -> None:
    undated = forecast(None, "someday")

    assert ((1,), ()) == (undated.days_meant("+1"), undated.days_meant("weekday 5"))


def temperature(facts: dict[str, Any]) -> float | None:
    truth = truth_of(facts)
    return truth.temperature if truth else None


def test_facts_are_never_taken_for_others() -> None:
    # Facts that are gone may leave their address to the next ones.
    found = [temperature({"weather": {"current": {"temperature": number}}}) for number in range(500)]

    assert list(map(float, range(500))) == found


def test_facts_are_read_once() -> None:
    facts = {"weather": {"city": "Oslo", "current": {"temperature": 5}}}

    assert truth_of(facts) is truth_of(facts)
    assert truth_of(facts) is not truth_of(dict(facts))
