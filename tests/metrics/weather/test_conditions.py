"""Reading the weather out of prose, and negation."""

from __future__ import annotations

import pytest

from keval_metrics_weather.reading.advice import advice, reasons_given
from keval_metrics_weather.reading.conditions import conditions, groups_of
from keval_metrics_weather.reading.words import read
from keval_metrics_weather.wording import ITEMS, RECOMMENDING


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Rain", {"rain"}),
        ("Drizzle", {"rain"}),
        ("Clear", {"clear"}),
        ("Clouds", {"clouds"}),
        ("Snow", {"snow"}),
        ("Thunderstorm", {"thunderstorm"}),
        ("Squall", {"thunderstorm"}),
        ("Tornado", {"thunderstorm"}),
        ("Mist", {"mist"}),
        ("Smoke", {"mist"}),
        ("Haze", {"mist"}),
        ("Fog", {"mist"}),
        ("Dust", {"mist"}),
        ("Sand", {"mist"}),
        ("Ash", {"mist"}),
        ("few clouds", {"clear", "clouds"}),
        ("thunderstorm with light rain", {"thunderstorm", "rain"}),
        ("Plasma", set()),
    ],
)
def test_openweathers_conditions_fall_into_the_documents_groups(text: str, expected: set[str]) -> None:
    assert expected == groups_of(text)


@pytest.mark.parametrize(
    "text",
    [
        "Take the train to the terrain park",
        "sunset is at nine and sunscreen helps",
        "Since you dislike rain",
        "I know you don't like rain",
        "Wear a rain jacket",
        "To be clear, I mean this",
        "cloudberries and brainstorms",
    ],
)
def test_words_that_are_not_the_weather_are_no_condition(text: str) -> None:
    assert () == conditions(read(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It is raining", "asserted"),
        ("No, it's raining", "asserted"),
        ("It's not cold, rain is coming", "asserted"),
        ("no rain", "denied"),
        ("It won't rain", "denied"),
        ("rain is unlikely", "denied"),
        ("rain isn't expected", "denied"),
        ("a rain-free day", "denied"),
        ("the rain has stopped", "denied"),
        ("it is no longer raining", "denied"),
        ("no snow, sleet or rain", "denied"),
        ("if it rains", "possible"),
        ("a 20 % chance of rain", "possible"),
        ("it might rain", "possible"),
    ],
)
def test_assertion_possibility_and_denial_are_told_apart(text: str, expected: str) -> None:
    assert expected == conditions(read(text))[-1].stance


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("You won't need an umbrella", ()),
        ("No umbrella needed, but bring a jacket", ("jacket",)),
        ("no need for an umbrella or a jacket", ()),
        ("An umbrella isn't necessary", ()),
        ("Leave the umbrella at home", ()),
        ("Don't forget your umbrella", ("umbrella",)),
        ("Don’t go out without an umbrella", ("umbrella",)),
        ("It should be sunny", ()),
        ("No, you should not need an umbrella", ()),
        ("You should bring boots", ("should", "boots")),
        ("My recommendation: layers", ("recommend", "layers")),
        ("coaty hats-off jackets", ("hat", "jacket")),
    ],
)
def test_advice_is_what_the_text_affirms(text: str, expected: tuple[str, ...]) -> None:
    assert expected == advice(read(text), RECOMMENDING, ITEMS).words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("because it rains", ("because",)),
        ("due to the wind, since it's cold", ("due to", "since")),
        ("it was warm, since Monday", ()),
        ("dry since 2019", ()),
    ],
)
def test_reasons_are_whole_words_and_not_times(text: str, expected: tuple[str, ...]) -> None:
    assert expected == reasons_given(read(text), ("because", "due to", "since"))
