"""Finding places in questions and answers."""

from __future__ import annotations

import pytest

from keval_metrics_weather.reading.places import find_names, places_asked, places_told
from keval_metrics_weather.reading.words import read


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What's the weather in Helsinki?", ["Helsinki"]),
        ("Weather in São Paulo", ["São Paulo"]),
        ("Łódź forecast", ["Łódź"]),
        ("weather in new york on monday", ["new york"]),
        ("What Is The Weather In Helsinki?", ["Helsinki"]),
        ("Is it cold in The Hague?", ["The Hague"]),
        ("Weather in St. Petersburg", ["St. Petersburg"]),
        ("Rain in Xi'an?", ["Xi'an"]),
        ("How is Washington, D.C.?", ["Washington"]),
        ("Weather in Ho Chi Minh City", ["Ho Chi Minh City"]),
        ("Paris?", ["Paris"]),
        ("How's Tokyo vs Osaka?", ["Tokyo", "Osaka"]),
        ("Is Reykjavík's weather colder than Tromsø's?", ["Reykjavík", "Tromsø"]),
        ("weather in 東京", ["東京"]),
        ("This weekend in Cape Town, South Africa?", ["Cape Town"]),
        ("What's the weather?", []),
        ("Will it rain in the morning?", []),
        ("weather in celsius", []),
        ("I'm travelling soon, what should I pack?", []),
        ("Sorry, I meant Rome.", ["Rome"]),
        ("Sorry, once more: do I need a jacket?", []),
        ("Weather in Nice?", ["Nice"]),
        ("Splendid, and tomorrow?", []),
        ("Oh dear. And tomorrow?", []),
        ("Back to Lisbon: and there?", ["Lisbon"]),
        ("Sure, Oslo.", ["Oslo"]),
        ("Oslo on Saturday?", ["Oslo"]),
        ("Oslo, Norway", ["Oslo"]),
    ],
)
def test_any_city_a_question_names_is_found(question: str, expected: list[str]) -> None:
    found = [city.name for city in places_asked(read(question))]

    assert expected == found


def test_answers_name_cities_after_prepositions_and_contrasts() -> None:
    text = read("It is mild in Helsinki, while Paris enjoys sun. Bring Layers in March.")

    assert ["Helsinki", "Paris"] == [city.name for city in places_told(text)]


@pytest.mark.parametrize("spelling", ["Łódź", "łódź", "Lodz", "LODZ", "L\u0301odz\u0301"])
def test_a_name_is_found_whatever_its_case_and_accents(spelling: str) -> None:
    text = read(f"Today {spelling} is mild.")

    assert {"Łódź": [6]} == find_names(text, ["Łódź", "Oslo", ""])


def test_names_that_begin_alike_are_told_apart() -> None:
    text = read("New York is warmer than New Delhi, but New Zealand's York is not.")

    assert {"New York": [0], "New Delhi": [24]} == find_names(text, ["New York", "New Delhi", "New Orleans"])
