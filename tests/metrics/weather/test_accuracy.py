"""Accuracy: the document's rules and examples, and the many ways of stating a temperature."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from keval_metrics_weather import Accuracy
from tests.metrics.weather.conftest import WEATHER, make_trial as trial

Weather = Mapping[str, Any]


def now(temperature: float | None, condition: str | None = None) -> Weather:
    return {"city": "Helsinki", "current": {"temperature": temperature, "main_condition": condition}}


@pytest.mark.parametrize(
    ("answer", "actual", "expected"),
    [
        ("25°C", 23, 0.9),  # the document's first example
        ("25°C", 20, 0.7),  # and its second
        ("25°C", 25, 1.0),
        ("25°C", 24, 1.0),
        ("25°C", 23.9, 0.9),
        ("25°C", 22.9, 0.7),
        ("−5 °C", 5, 0.7),
        ("minus five degrees", -7, 0.9),
        ("between 3 and 7°C", 5, 0.9),  # the worse end counts, once
        ("between 4 and 6°C", 5, 1.0),
        ("in the low 20s", 21.8, 1.0),
        ("mid-teens", 21.8, 0.7),
        ("Humidity 5 %, 5 km/h at 10:30: 20 °C", 20, 1.0),
    ],
)
def test_temperatures_cost_nothing_a_tenth_or_three(answer: str, actual: float, expected: float) -> None:
    score = Accuracy().score(trial(answer, weather=now(actual)))

    assert (expected, False) == (score.value, score.neutral)


def test_the_reason_names_what_was_said_what_is_true_and_the_cost() -> None:
    score = Accuracy().score(trial("It is 25 °C.", weather=now(20)))

    assert "said 25 °C, actual 20 °C: -0.3" == score.reason
    assert [{"when": "now", "said": "25 °C", "actual": "20 °C", "off": 5.0, "penalty": 0.3}] == score.details[
        "compared"
    ]


def test_fahrenheit_is_shown_with_its_celsius() -> None:
    score = Accuracy().score(trial("It is 68°F.", weather=now(20)))

    assert "said 68°F (20 °C), actual 20 °C" == score.reason


@pytest.mark.parametrize(
    ("answer", "condition", "expected"),
    [
        ("It's raining", "Drizzle", 1.0),
        ("Sunny", "Clear", 1.0),
        ("Sunny", "Rain", 0.8),
        ("No rain", "Rain", 0.8),
        ("No rain", "Clear", 1.0),
        ("Cloudy with rain", "Rain", 1.0),
        ("Cloudy, and it might rain", "Rain", 1.0),
        ("Partly cloudy", "Clear", 1.0),
    ],
)
def test_a_wrong_condition_costs_two_tenths(answer: str, condition: str, expected: float) -> None:
    score = Accuracy().score(trial(answer, weather=now(None, condition)))

    assert (expected, False) == (score.value, score.neutral)


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "The average for June is 15 °C.",
        "Layers are good below 10 °C.",
        "It might rain.",
        "Feels like 25 °C",
        "Tomorrow it's 3 °C",
    ],
)
def test_an_answer_without_a_claim_is_neutral(answer: str) -> None:
    score = Accuracy().score(trial(answer, weather=now(20, "Clear")))

    assert (0.5, True) == (score.value, score.neutral)


@pytest.mark.parametrize(
    "weather",
    [None, {}, [], "sunny", {"city": "Atlantis", "unknown": True}, {"current": None}, {"current": {"temperature": "x"}},
     {"current": {"temperature": float("nan")}}, {"current": {"temperature": True}}, {"daily_summaries": [None, 3]}],
)  # fmt: skip
def test_without_ground_truth_the_score_is_neutral(weather: Any) -> None:
    score = Accuracy().score(trial("25°C", weather=weather))

    assert (0.5, True) == (score.value, score.neutral)


@pytest.mark.parametrize(
    "answer",
    [
        "It's 20°C in Helsinki and 30°C in Paris.",
        "In Helsinki it's 21°C, while Paris enjoys 30°C.",
        "Helsinki: 20 °C. In Rome, it is 33 °C.",
        "It's 20°C now and 35°C tomorrow.",
        "Today: high of 21°C and low of 12°C.",
        "Today: 12 °C in the morning, 20 °C in the afternoon.",
        "| Day | High | Low |\n| Today | 21°C | 12°C |\n| Tomorrow | 17°C | 10°C |",
    ],
)
def test_only_the_asked_city_and_day_count(answer: str) -> None:
    score = Accuracy().score(trial(answer, weather=WEATHER))

    assert (1.0, False) == (score.value, score.neutral)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Today it's 12 °C.", "said 12 °C, actual 12 °C to 21 °C"),
        ("Today it's 20 °C.", "said 20 °C, actual 20 °C"),
        ("Today it's 8 °C.", "said 8 °C, actual 12 °C to 21 °C: -0.3"),
        ("It's 12 °C.", "said 12 °C, actual 20 °C: -0.3"),
        ("It's 12 °C right now.", "said 12 °C, actual 20 °C: -0.3"),
    ],
)
def test_a_temperature_of_today_is_held_to_now_or_to_the_day(answer: str, expected: str) -> None:
    score = Accuracy().score(trial(answer, weather=WEATHER))

    assert expected == score.reason


def test_a_table_of_days_is_read_row_by_row() -> None:
    table = "| Day | High | Low |\n| Today | 21°C | 12°C |\n| Tomorrow | {} | 10°C |"

    right, wrong = (
        Accuracy().score(trial(table.format(high), "Forecast for Helsinki?", weather=WEATHER))
        for high in ("17°C", "27°C")
    )

    assert (1.0, 0.7) == (right.value, wrong.value)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Yesterday it was 5 °C. It's 25 °C.", "said 25 °C, actual 20 °C: -0.3"),
        ("Yesterday it was rainy, with 5 °C. It's 20 °C.", "said 20 °C, actual 20 °C"),
        ("It's 25 °C (12 °C tomorrow).", "said 25 °C, actual 20 °C: -0.3"),  # a day stands for what is next to it
    ],
)
def test_a_day_holds_for_what_it_is_said_of(answer: str, expected: str) -> None:
    score = Accuracy().score(trial(answer, weather={**WEATHER, "current": {"temperature": 20}}))

    assert expected == score.reason


def test_a_past_day_leaves_the_one_named_before_it_in_force() -> None:
    answer = "Tomorrow looks fine. Yesterday it was 5 °C. It will be 27 °C."

    score = Accuracy().score(trial(answer, "Forecast for Helsinki?", weather=WEATHER))

    assert "said 27 °C for 2026-06-19, actual 10 °C to 17 °C: -0.3" == score.reason


def test_both_cities_of_a_comparison_are_told_apart() -> None:
    weather = {"city": "London", "current": {"temperature": 20}}
    question = "Compare Paris and London"

    right = Accuracy().score(trial("Paris 28°C, London 20°C", question, weather=weather))
    wrong = Accuracy().score(trial("Paris 20°C, London 28°C", question, weather=weather))

    assert (1.0, 0.7) == (right.value, wrong.value)


def test_of_two_cities_the_figures_of_one_are_not_held_against_the_other_that_was_left_out() -> None:
    weather = {
        "city": "Oslo",
        "current": {"temperature": 3},
        "others": [{"city": "Rome", "current": {"temperature": 21}}],
    }

    omitted, wrong = (
        Accuracy().score(trial(said, "Compare Oslo and Rome", weather=weather)).value
        for said in ("Rome has 21 °C and sun; I have nothing on the other city.", "Rome has 12 °C.")
    )

    assert (1.0, 0.7) == (omitted, wrong)


def test_a_city_spelled_as_in_the_question_is_the_asked_one() -> None:
    weather = {"city": "Munich", "current": {"temperature": 20}}

    score = Accuracy().score(trial("In München it's 25°C", "Weather in München?", weather=weather))

    assert 0.7 == score.value


@pytest.mark.parametrize(
    ("question", "answer", "expected"),
    [
        ("Helsinki tomorrow?", "Tomorrow: high 17°C, low 10°C, cloudy.", 1.0),
        ("Helsinki tomorrow?", "High 25°C, low 10°C.", 0.7),
        ("Helsinki tomorrow?", "Around 15°C with rain.", 0.8),
        ("Helsinki tomorrow?", "It's 20°C now; tomorrow 12 °C.", 1.0),
        ("Helsinki tomorrow?", "Right now it's 20°C.", 0.8),
        ("Helsinki on Saturday?", "On 2026-06-20: 10 to 24°C.", 0.7),
        ("Will it snow in Helsinki on Monday?", "Yes, snow on Monday, −3 to 2 °C.", 1.0),
        ("Helsinki this weekend?", "Sat: 24°C high\nSun: 15°C high, thunderstorms", 1.0),
        ("Forecast for the next 3 days in Helsinki?", "Today 12–21°C\nTomorrow 10–17°C\nSaturday 14–24°C", 1.0),
        ("Forecast for the next 3 days in Helsinki?", "Today 12–21°C\nTomorrow 20–27°C\nSaturday 14–34°C", 0.4),
        ("Forecast for Helsinki?", "Clear and 14–24°C on the third day, 9–15°C on the fourth.", 1.0),
        ("Helsinki on Saturday?", "Over the next days −3 to 24°C.", 1.0),
        ("Forecast for Helsinki?", "Day 1: high 21 °C, low 12 °C. Day 2: high 17 °C, low 10 °C.", 1.0),
    ],
)
def test_forecasts_are_held_to_the_asked_days(question: str, answer: str, expected: float) -> None:
    score = Accuracy().score(trial(answer, question, weather=WEATHER))

    assert (expected, False) == (score.value, score.neutral)


def test_a_day_beyond_the_forecast_is_neutral() -> None:
    score = Accuracy().score(trial("It will be 2°C.", "Helsinki on Wednesday?", weather=WEATHER))

    assert (0.5, True) == (score.value, score.neutral)


def test_a_follow_up_is_about_the_day_asked_before() -> None:
    history = [("What's the WEATHER in Paris tomorrow?", "15°C")]

    score = Accuracy().score(trial("12 °C tomorrow", "And in Helsinki?", weather=WEATHER, history=history))

    assert "said 12 °C for 2026-06-19, actual 10 °C to 17 °C" == score.reason


def test_penalties_add_up_and_stop_at_nothing() -> None:
    answer = "Today 40–50°C, tomorrow 40–50°C, Saturday 40–50°C, Sunday 40–50°C, Monday 40–50°C"

    score = Accuracy().score(trial(answer, "Helsinki forecast?", weather=WEATHER))

    assert 0.0 == score.value


def test_options_change_tolerances() -> None:
    said = trial("25°C", weather=now(23.5, "Rain"))

    strict = Accuracy(tolerance=1.0).score(said)
    lenient = Accuracy(rounding=2.0).score(said)

    assert (0.7, 1.0) == (strict.value, lenient.value)


@pytest.mark.parametrize(
    ("answer", "condition", "expected"),
    [
        ("You don't need a coat under clear skies.", "Clear", 1.0),
        ("I wouldn't drive in the snow.", "Snow", 1.0),
        ("I wouldn't drive in the snow.", "Clear", 0.8),
        ("It hasn't stopped raining.", "Rain", 1.0),
        ("No need for an umbrella, as it is clear.", "Clear", 1.0),
        ("I don't expect a day with rain.", "Rain", 0.8),
        ("You don't need to worry about rain.", "Rain", 0.8),
    ],
)
def test_what_is_not_needed_or_done_denies_no_weather(answer: str, condition: str, expected: float) -> None:
    weather = {"city": "Oslo", "current": {"main_condition": condition}}

    assert expected == Accuracy().score(trial(answer, "Weather in Oslo?", weather=weather)).value


@pytest.mark.parametrize(
    ("question", "answer", "expected"),
    [
        ("What's the weather in Helsinki this week?", "It's 20 °C with rain right now.", 0.8),
        ("Helsinki today and tomorrow?", "It's 20 °C with rain.", 0.8),
        ("What's the forecast for Helsinki?", "It's currently 20 °C.", 0.8),
        ("What's the weather in Helsinki this week?", "It's 20 °C now, and Friday will be cloudy.", 1.0),
        ("What's the weather in Helsinki this week?", "Between -3 and 24 °C.", 1.0),
        ("What's the weather in Helsinki today?", "It's 20 °C with rain.", 1.0),
    ],
)
def test_the_present_alone_is_no_forecast(question: str, answer: str, expected: float) -> None:
    assert expected == Accuracy().score(trial(answer, question, weather=WEATHER)).value
