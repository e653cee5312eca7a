"""Telling advice from what only looks like it, and advice to be outdoors from mention of the outdoors."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from keval import Trial
from keval_metrics_weather import Accuracy
from keval_metrics_weather.reading.advice import advice, flow_of
from keval_metrics_weather.reading.likes import acknowledged, suggested_outdoors
from keval_metrics_weather.reading.words import read
from keval_metrics_weather.wording import AWARENESS, FLOW, ITEMS, OUTDOOR, RECOMMENDING

MakeTrial = Callable[..., Trial]


@pytest.mark.parametrize(
    "text",
    [
        "Sunscreen, sunglasses and a cap are advisable.",
        "Parka, mittens, lined boots.",
        "Drink plenty and stay in the shade.",
        "I'd take the train tomorrow.",
        "It would be best to stay in.",
        "Snow may cause problems, so drive carefully.",
        "Stay safe and dress warmly!",
        "I would advise postponing the drive.",
        "A walk along the river would be lovely.",
        "You could visit the castle.",
        "Don't forget a water bottle.",
    ],
)
def test_advice_is_seen_in_many_words(text: str) -> None:
    assert advice(read(text), RECOMMENDING, ITEMS).given


@pytest.mark.parametrize(
    "text",
    [
        "Stay safe!",
        "Enjoy your day!",
        "Bundle of joy it is not!",
        "I'd take boring any day.",
        "A blanket of fog lies over the town.",
        "Skiers have recommended the north side, and the jackets in the shops are half price.",
        "Once I have your dates I can suggest what to pack.",
        "You can check the website of the service.",
        "Nothing to prepare for.",
        "It should stay sunny.",
    ],
)
def test_what_only_looks_like_advice_is_none(text: str) -> None:
    assert () == advice(read(text), RECOMMENDING, ITEMS).given


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Since you love hiking, the trail would be fine.", ("trail",)),
        ("Get outside for a swim!", ("outside", "swim")),
        ("Stay indoors, it is chilly outside.", ()),
        ("Gloves if you go outside.", ()),
        ("Outside, the snow is knee-deep.", ()),
        ("Avoid outdoor sports.", ()),
        ("Outdoor activities are not recommended.", ()),
        ("Visit the water park.", ()),
        ("The trains are running.", ()),
    ],
)
def test_only_advice_to_be_outdoors_counts(text: str, expected: tuple[str, ...]) -> None:
    assert expected == suggested_outdoors(read(text), OUTDOOR)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("If you're not keen on the cold, wear a coat.", True),
        ("Knowing that you can't stand rain, take an umbrella.", True),
        ("I know the cold isn't your thing.", True),
        ("Given your love of the outdoors, go for a walk.", True),
        ("Would you like the forecast?", False),
        ("If you'd like, I can check.", False),
        ("You might like the museum.", False),
    ],
)
def test_acknowledging_a_preference_is_told_from_an_offer(text: str, expected: bool) -> None:
    assert expected == bool(acknowledged(read(text), AWARENESS))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5. **Safety First**", ()),
        ("Over the next 3 days it rains.", ()),
        ("Tell me your city first.", ()),
        ("First, check the wind. Then go.", ("first", "then")),
        ("Based on this, I'd go.", ("based on",)),
    ],
)
def test_words_of_order_are_told_from_headings_and_dates(text: str, expected: tuple[str, ...]) -> None:
    assert expected == flow_of(read(text), FLOW)


@pytest.mark.parametrize(
    ("question", "answer", "expected"),
    [
        ("Weather in Oslo?", "Oslo has 10 °C. Rome has 18 °C.", 1.0),
        ("Weather in Oslo?", "It's 10 °C. For comparison, Rome is at 18 °C with snow.", 1.0),
        ("Weather in Oslo?", "Oslo is milder than Bergen: 10 °C, versus 4 °C in Bergen.", 1.0),
        ("Weather in Oslo?", "| City | Temp |\n|---|---|\n| Oslo | 10 °C |\n| Rome | 18 °C |", 1.0),
        ("Weather in Oslo?", "After last night's thunderstorms it's clear, 10 °C.", 1.0),
        ("Weather in Oslo?", "10 °C. Yesterday at this time: +15 °C and snow.", 1.0),
        ("Weather in Oslo?", "10 °C now, and by midnight it will be 3 °C.", 1.0),
        ("Weather in Oslo?", "10 °C. Typically it's 15 °C and snowy in July.", 1.0),
        ("Weather in München?", "Munich: 10 °C. Rome: 18 °C.", 1.0),
        ("weather in oslo", "Oslo, Norway: 12.5 °C (feels like 10 °C)", 0.7),
    ],
)
def test_what_is_said_of_others_is_not_held_against_the_asked_place(
    question: str, answer: str, expected: float, trial: MakeTrial
) -> None:
    city = "Munich" if "München" in question else "Oslo"
    weather = {"city": city, "current": {"temperature": 10, "main_condition": "Clear"}}

    score = Accuracy().score(trial(answer, question, weather=weather))

    assert (expected, False) == (score.value, score.neutral)


def test_each_place_that_is_asked_about_is_held_to_its_own_weather(trial: MakeTrial) -> None:
    rome = {"city": "Rome", "current": {"temperature": 20}}
    weather = {"city": "Oslo", "current": {"temperature": 5}, "others": [rome]}

    right, wrong = (
        Accuracy().score(trial(said, "Compare Oslo and Rome", weather=weather))
        for said in ("It's 5 °C in Oslo, while Rome enjoys 20 °C", "It's 5 °C in Oslo, while Rome enjoys 30 °C")
    )

    assert (1.0, 0.7) == (right.value, wrong.value)
