"""Telling advice from what only looks like it, and the weather and its denial from other words."""

from __future__ import annotations

import pytest

from keval_metrics_weather import Accuracy
from keval_metrics_weather.preferences import acknowledged, suggested_outdoors
from keval_metrics_weather.reading.advice import advice, flow_of, reasons_given
from keval_metrics_weather.reading.conditions import conditions, groups_of
from keval_metrics_weather.reading.words import read
from keval_metrics_weather.wording import AWARENESS, FLOW, ITEMS, OUTDOOR, RECOMMENDING
from tests.metrics.weather.conftest import make_trial as trial


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Rain", {"rain"}),
        ("Clear", {"clear"}),
        ("Clouds", {"clouds"}),
        ("Snow", {"snow"}),
        ("Thunderstorm", {"thunderstorm"}),
        ("Squall", {"thunderstorm"}),
        ("Mist", {"mist"}),
        ("Fog", {"mist"}),
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
        ("It's not cold, rain is coming", "asserted"),
        ("no rain", "denied"),
        ("It won't rain", "denied"),
        ("rain isn't expected", "denied"),
        ("a rain-free day", "denied"),
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
        ("Leave the umbrella at home", ()),
        ("Don't forget your umbrella", ("umbrella",)),
        ("Don’t go out without an umbrella", ("umbrella",)),
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
        ("Be careful as light snow may make the streets slippery.", ("as",)),
        ("Take a hat as it is windy.", ("as",)),
        ("Take a hat as you leave; it is as cold as it was, as well as wet, as of now.", ()),
    ],
)
def test_reasons_are_whole_words_and_not_times(text: str, expected: tuple[str, ...]) -> None:
    assert expected == reasons_given(read(text), ("because", "due to", "since", "as"))


@pytest.mark.parametrize(
    "text",
    [
        "Sunscreen, sunglasses and a cap are advisable.",
        "Drink plenty and stay in the shade.",
        "I'd take the train tomorrow.",
        "Snow may cause problems, so drive carefully.",
        "Stay safe and dress warmly!",
        "I would advise postponing the drive.",
        "A walk along the river would be lovely.",
        "Don't forget a water bottle.",
    ],
)
def test_advice_is_seen_in_many_words(text: str) -> None:
    assert advice(read(text), RECOMMENDING, ITEMS).given


@pytest.mark.parametrize(
    "text",
    [
        "Stay safe!",
        "Bundle of joy it is not!",
        "I'd take boring any day.",
        "A blanket of fog lies over the town.",
        "Skiers have recommended the north side, and the jackets in the shops are half price.",
        "Once I have your dates I can suggest what to pack.",
        "Nothing to prepare for.",
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
        ("Outside, the snow is knee-deep.", ()),
        ("Avoid outdoor sports.", ()),
        ("Visit the water park.", ()),
        ("The trains are running.", ()),
        ("If you go outside, dress warmly.", ()),
        ("Dress warmly if you are walking.", ()),
        ("It is unpleasant for outdoor activities.", ()),
        ("**Outdoor activities:** it is windy.", ()),
        ("### Outdoor plans\nIt is windy.", ()),
        ("**Outdoor activities:** perfect for a hike.", ("hike",)),
        ("Rain may affect your outdoor plans.", ()),
        ("It is too cold for a picnic.", ()),
        ("A great day for outdoor activities!", ("outdoor",)),
        ("If you'd like some air, a walk would do you good.", ("walk",)),
    ],
)
def test_only_advice_to_be_outdoors_counts(text: str, expected: tuple[str, ...]) -> None:
    assert expected == suggested_outdoors(read(text), OUTDOOR)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("If you're not keen on the cold, wear a coat.", True),
        ("Knowing that you can't stand rain, take an umbrella.", True),
        ("Given your love of the outdoors, go for a walk.", True),
        ("Would you like the forecast?", False),
        ("You might like the museum.", False),
        ("If you enjoy walking, the park is near.", False),
        ("If you prefer the indoors, see a film.", False),
        ("It's a fine evening for you to enjoy.", False),
        ("As you enjoy walking, see the park.", True),
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
    question: str, answer: str, expected: float
) -> None:
    city = "Munich" if "München" in question else "Oslo"
    weather = {"city": city, "current": {"temperature": 10, "main_condition": "Clear"}}

    score = Accuracy().score(trial(answer, question, weather=weather))

    assert (expected, False) == (score.value, score.neutral)


def test_each_place_that_is_asked_about_is_held_to_its_own_weather() -> None:
    rome = {"city": "Rome", "current": {"temperature": 20}}
    weather = {"city": "Oslo", "current": {"temperature": 5}, "others": [rome]}

    right, wrong = (
        Accuracy().score(trial(said, "Compare Oslo and Rome", weather=weather))
        for said in ("It's 5 °C in Oslo, while Rome enjoys 20 °C", "It's 5 °C in Oslo, while Rome enjoys 30 °C")
    )

    assert (1.0, 0.7) == (right.value, wrong.value)
