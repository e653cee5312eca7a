"""Telling a question back from an offer, and a failure from other words."""

from __future__ import annotations

import pytest

from keval_metrics_weather.behaviour import AmbiguityHandling
from keval_metrics_weather.helpfulness import RecommendationQuality
from keval_metrics_weather.reading.asking import alternatives_offered, asking, assumed
from keval_metrics_weather.reading.failures import failures
from keval_metrics_weather.reading.words import read
from keval_metrics_weather.retention import ContextRetention
from keval_metrics_weather.tool_use import ActionPlanning
from keval_metrics_weather.wording import MISSING
from tests.metrics.weather.conftest import make_trial as trial


@pytest.mark.parametrize(
    ("text", "place", "time"),
    [
        ("Where?", True, False),
        ("Sure! Which city are you in?", True, False),
        ("Tell me where you're pitching your tent and I'll check Saturday for you.", True, False),
        ("Give me a town and I'll tell you if it'll dry.", True, False),
        ("For which place do you want the weather?", True, False),
        ("Is that for Espoo again, or a different city?", True, False),
        ("To check Sunday I need to know:\n1. **Where** are you hiking?\n2. **When** do you start?", True, True),
        ("Which dates?", False, True),
        ("What date is the wedding?", False, True),
        ("When are you travelling? Once I have your dates I can check.", False, True),
        ("Would you like the weather of another city?", False, False),
        ("Let me know if you need a forecast for another city!", False, False),
        ("What else can I do for you today?", False, False),
        ("It's 5 °C in the city.", False, False),
    ],
)
def test_a_question_back_is_told_from_an_offer(text: str, place: bool, time: bool) -> None:
    found = asking(read(text))

    assert (place, time) == (found.place, found.time)


@pytest.mark.parametrize(
    "text", ["I'll assume you mean Tampere.", "Assuming you're still in Oslo, 4 °C.", "No city, so I'll take Brno."]
)
def test_what_is_taken_for_granted_is_noticed(text: str) -> None:
    assert assumed(read(text))


IN_OSLO = [("Weather in Oslo?", "It's 5 °C in Oslo."), ("Tell me a fact about clouds.", "They are heavy.")]


def test_asking_for_the_place_is_right_in_a_conversation_too() -> None:
    asked = trial("Happy to help! Which city would you like to know about?", "What's the weather?", history=IN_OSLO)

    others = [metric.score(asked) for metric in (RecommendationQuality(), ActionPlanning(), ContextRetention())]

    assert 1.0 == AmbiguityHandling().score(asked).value
    assert [True] * 3 == [score.neutral for score in others]


ANSWERS = ("It's 5 °C in Oslo.", "Assuming you mean Oslo, it's 5 °C.", "Which city do you mean?")


@pytest.mark.parametrize(
    ("history", "question", "open_points"),
    [
        (IN_OSLO, "What's the weather?", ["no location"]),
        (IN_OSLO[:1], "What's the weather?", None),
        ([*IN_OSLO[:1], ("Thanks!", "Any time.")], "Do I need a coat?", None),
        ([("I'm in Oslo.", "Nice!")], "Do I need a coat?", None),
        (IN_OSLO, "And tomorrow?", None),
        ((), "Weather in Springfield?", ["several places of that name"]),
    ],
)
def test_whether_a_question_is_ambiguous_does_not_depend_on_the_answer(
    history: list[tuple[str, str]], question: str, open_points: list[str] | None
) -> None:
    scores = [AmbiguityHandling().score(trial(said, question, history=history)) for said in ANSWERS]

    assert [open_points] * 3 == [score.details.get("unclear") for score in scores]
    assert [open_points is None] * 3 == [score.neutral for score in scores]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("is it nice out?", ["no location"]),
        ("Will I be ok in boots today?", ["no location"]),
        ("temperature near home", ["no location"]),
        ("Will I need sunscreen in Malaga?", ["no time"]),
        ("What should I pack for our trip to Lucca?", ["no time"]),
    ],
)
def test_what_a_question_leaves_open_is_noticed(question: str, expected: list[str]) -> None:
    assert expected == AmbiguityHandling().score(trial("It's 20 °C.", question)).details["unclear"]


@pytest.mark.parametrize(
    "text",
    [
        "You don't have to take an umbrella.",
        "It's mild, so you really can't find a better day.",
        "It can't get any nicer.",
        "If you don't have an umbrella, buy one.",
        "I don't have to warn you of anything.",
        "You can't tell the sea from the sky.",
    ],
)
def test_what_one_need_not_or_cannot_do_is_no_missing_data(text: str) -> None:
    assert () == failures(read(text), (), MISSING).missing


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I don't have live weather data.", "don't have"),
        ("I told you I can't get it.", "can't get"),
        ("As you know, I currently can't tell.", "can't tell"),
        ("I asked for it, but it couldn't find Atlantis.", "couldn't find"),
        ("The service doesn't have data for it.", "doesn't have"),
        ("I have no data to show.", "no data"),
        ("I was unable to find it.", "unable to"),
    ],
)
def test_missing_data_is_admitted_by_the_speaker_or_of_a_service(text: str, expected: str) -> None:
    assert any(expected in words for words in failures(read(text), (), MISSING).missing)


def test_where_an_answer_points_to_is_listed_in_the_same_order_in_every_process() -> None:
    text = read("You can visit the site, check the radar or ask the office; alternatively, wait.")

    assert ("ask", "check", "visit", "wait", "alternatively") == alternatives_offered(text)
