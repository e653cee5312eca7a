from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keval_weather.cities import CityFinder, Mention

FINDER = CityFinder(["New York", "NYC", "Oslo", "Paris", "Rio de Janeiro", "Rio", "São Paulo", "Mexico City"])


def _named(text: str) -> list[str]:
    return [mention.name for mention in FINDER.mentions(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What's the weather in Atlantis?", ["Atlantis"]),
        ("weather in new york right now", ["new york"]),
        ("Is sao paulo's weather nice?", ["sao paulo"]),
        ("How about Łódź tomorrow?", ["Łódź"]),
        ("Is it cold in Stratford upon Avon on Monday?", ["Stratford upon Avon"]),
        ("Should I go to St. Louis. What then?", ["St. Louis"]),
        ("I will be in 東京 tomorrow", ["東京"]),
        ("Forecast for Aix-en-Provence, please", ["Aix-en-Provence"]),
        ("rain in the Hague", ["Hague"]),
        ("Give me the Springfield forecast", ["Springfield"]),
        ("WHAT IS THE WEATHER IN OSLO TODAY", ["OSLO"]),
        ("Hello Oslo weather", ["Oslo"]),
        ("Compare Oslo with Paris", ["Oslo", "Paris"]),
        ("Is it warm in Rio de Janeiro?", ["Rio de Janeiro"]),
        ("I love NYC", ["NYC"]),
        ("Sorry, I meant Farville", ["Farville"]),
        ("No, not Oslo: Paris", ["Paris"]),
        ("How is it in Paris, and not in Oslo?", ["Paris"]),
        ("Paris instead of Oslo, rather than Rio", ["Paris"]),
        ("Rather not. Oslo is too cold", ["Oslo"]),
        ("Why not Oslo?", ["Oslo"]),
        ("Will it rain or not in Oslo?", ["Oslo"]),
        ("Not Oslo", []),
    ],
)
def test_cities_are_found(text: str, expected: list[str]) -> None:
    assert expected == _named(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Will it rain tomorrow?",
        "What about Friday? Or in January?",
        "How many degrees in Celsius?",
        "In summer I'm happy",
        "Please tell Anna that it is cold",
        "el rio grande is a river, not a nyc",
    ],
)
def test_other_words_are_not(text: str) -> None:
    assert _named(text) == []


def test_a_city_that_a_preposition_places_comes_first() -> None:
    found = FINDER.mentions("I'm from Oslo, so what's the weather in Atlantis?")

    assert [Mention("Atlantis", placed=True), Mention("Oslo", placed=False)] == found


@given(st.text() | st.lists(st.sampled_from(["in", "Oslo", "of", "de", "X", ". ", ", ", "the"])).map(" ".join))
def test_any_text_can_be_searched(text: str) -> None:
    for mention in FINDER.mentions(text):
        assert mention.name in text
