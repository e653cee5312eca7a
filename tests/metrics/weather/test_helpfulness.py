"""Task completion, recommendations and adaptation: the document's rules and worked examples."""

from __future__ import annotations

from typing import Any

import pytest

from keval import Message, Sample, ToolCall, Transcript, Trial
from keval_metrics_weather.helpfulness import AdaptationQuality, RecommendationQuality, TaskCompletion
from keval_metrics_weather.tool_use import ActionPlanning
from tests.metrics.weather.conftest import make_trial as trial

COMPLETE = "The temperature in Helsinki is 15°C with light rain. You should bring an umbrella."
RECOMMENDING = "I recommend bringing an umbrella because it's raining, and a jacket since it's 10°C."
ADAPTED = "It's quite cold at 5°C. I remember you don't like cold weather, so I'd recommend a warm jacket and layers."
LEARN = "update_user_preferences_from_insight"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (COMPLETE, 1.0),  # the document's example
        ("The temperature in Helsinki is 15°C.", 0.7),
        ("It is raining in Helsinki right now.", 0.5),
        ("You should bring an umbrella in Helsinki today.", 0.7),
        ("I don't have live weather data.", 0.2),
        ("Rain.", 0.3),
        ("Let me tell you about the history of Finland.", 0.3),
        ("", 0.1),
        ("The train leaves at 10:30 on 2026-06-18 from track 5.", 0.3),
        ("There was no error: the temperature is 15 °C.", 0.7),
    ],
)
def test_task_completion(answer: str, expected: float) -> None:
    assert expected == TaskCompletion().score(trial(answer)).value


def test_task_completion_names_what_it_found() -> None:
    points = "+0.2 figures (15°C), +0.2 recommendations (should, umbrella), +0.1 substance, 82 characters"

    assert f"0.5 to begin with, {points}" == TaskCompletion().score(trial(COMPLETE)).reason


def test_task_completion_wants_no_weather_in_a_chat() -> None:
    assert 0.5 == TaskCompletion().score(trial("You're welcome, any time!", "Thanks a lot!")).value


@pytest.mark.parametrize(
    ("answer", "question", "expected"),
    [
        (RECOMMENDING, "What should I wear?", 1.0),  # the document's example
        ("You should go for a walk.", "", 0.5),
        ("You should take a coat.", "", 0.7),
        ("You should go because it's dry.", "", 0.7),
        ("You should take a coat and an umbrella.", "", 0.8),
        ("It was warm; the train is due today.", "What should I wear?", 0.2),
        ("It's dry, you won't need an umbrella.", "Do I need an umbrella?", 0.7),
        ("You won't need a coat, because it's warm.", "What should I wear?", 0.9),
        ("You won't need a coat, but take a hat.", "What should I wear?", 0.7),
        ("No, it stays dry.", "Do I need an umbrella?", 0.5),
        ("I don't recommend going out.", "Should I go for a walk?", 0.5),
        ("I have no recommendation.", "What should I wear?", 0.2),
        ("I don't know whether you need an umbrella.", "Do I need an umbrella?", 0.2),
        ("No, sorry, I couldn't get the weather.", "Do I need an umbrella?", 0.2),
        ("No.", "Do I need an umbrella?", 0.5),
        ("No idea.", "Do I need an umbrella?", 0.2),
    ],
)
def test_recommendation_quality(answer: str, question: str, expected: float) -> None:
    score = RecommendationQuality().score(trial(answer, question))

    assert (expected, False) == (score.value, score.neutral)


def test_recommendation_quality_names_what_was_advised_against() -> None:
    score = RecommendationQuality().score(trial("No, you won't need an umbrella.", "Do I need an umbrella in Oslo?"))

    assert "0.5 to begin with, +0.2 specific items (umbrella)" == score.reason
    assert ["umbrella"] == score.details["recommendations"]


def test_recommendation_quality_is_neutral_when_none_was_asked_for_or_given() -> None:
    assert RecommendationQuality().score(trial("15°C")).neutral


def test_an_answer_that_must_first_ask_for_the_city_is_not_blamed_for_it() -> None:
    asked = trial("Which city are you in?", "Should I take a coat?")

    scores = [metric.score(asked) for metric in (RecommendationQuality(), ActionPlanning())]

    assert [(0.5, True)] * 2 == [(score.value, score.neutral) for score in scores]


def test_an_item_that_looks_like_a_noun_of_recommending_is_an_item() -> None:
    score = RecommendationQuality(items=("lotion",)).score(trial("I would pack lotion.", "What should I pack?"))

    assert ["lotion"] == score.details["recommendations"]


def test_adaptation_quality_of_the_documents_example() -> None:
    weather = {"city": "Helsinki", "current": {"temperature": 5}}

    score = AdaptationQuality().score(trial(ADAPTED, weather=weather, preferences={"dislikes_cold": True}))

    assert (0.75, ["dislikes_cold"]) == (score.value, score.details["preferences"])


@pytest.mark.parametrize(
    ("preferences", "answer", "expected"),
    [
        ({"dislikes_rain": True}, "It's raining: take an umbrella.", 0.65),
        ({"dislikes_rain": True}, "It's raining.", 0.5),
        ({"prefers_indoor": True}, "Visit a museum.", 0.65),
        ({"prefers_indoor": True}, "Go for a hike.", 0.5),
        ({"outdoor_activities": ["hiking"]}, "Go for a hike.", 0.65),
        ({"outdoor_activities": True}, "As you prefer being active: your preferences suggest a walk.", 0.75),
        (
            {"dislikes_cold": True, "dislikes_rain": True, "outdoor_activities": True},
            "It's 5 °C and rainy. Since you dislike cold, wear a coat, take an umbrella and enjoy a walk.",
            1.0,
        ),
        ({"dislikes_cold": True}, "It's freezing, wear gloves.", 0.65),
    ],
)
def test_adaptation_quality_without_ground_truth_reads_the_answer(
    preferences: Any, answer: str, expected: float
) -> None:
    assert expected == AdaptationQuality().score(trial(answer, preferences=preferences)).value


@pytest.mark.parametrize(
    "preferences", [None, {}, [], "none", {"dislikes_cold": False}, {"dislikes_cold": "no"}, {"dislikes_wind": True}]
)
def test_adaptation_quality_is_neutral_without_a_preference_that_matters(preferences: Any) -> None:
    assert AdaptationQuality().score(trial("It's 5 °C.", preferences=preferences)).neutral


def test_adaptation_quality_holds_the_facts_above_the_answer() -> None:
    weather = {"city": "Helsinki", "current": {"temperature": 25, "main_condition": "Clear"}}
    preferences = {"dislikes_cold": True, "dislikes_rain": True}

    assert AdaptationQuality().score(trial("It's 5 °C, rainy: coat.", weather=weather, preferences=preferences)).neutral


def conversation(answer: str, calls: tuple[ToolCall, ...], preferences: Any) -> Trial:
    """Three turns, the last of which is judged."""
    facts = {"preferences": preferences, "weather": {"city": "Oslo", "current": {"temperature": 5}}}
    sample = Sample("s", "I hate the cold.", turns=("And rain.", "What is it like in Oslo?"), facts=facts)
    messages = (Message("assistant", "Noted.", 0), Message("assistant", "Noted.", 1), Message("assistant", answer, 2))
    return Trial("t", sample, "a", "c", 1, Transcript(messages=messages, tool_calls=calls))


def test_what_is_learned_in_the_first_turn_is_judged_in_the_last() -> None:
    learned = ToolCall(f"weather_{LEARN}", {"user_id": "u", "dislikes_cold": True, "insight_text": "hates cold"})

    score = AdaptationQuality().score(conversation("5 °C: wear a coat.", (learned,), {}))
    ignored = AdaptationQuality().score(conversation("5 °C: lovely.", (learned,), {}))

    assert (0.65, 0.5, False) == (score.value, ignored.value, ignored.neutral)
    assert [{"dislikes_cold": True, "insight_text": "hates cold"}] == score.details["learned_in_this_conversation"]


def test_what_is_learned_counts_with_what_was_known() -> None:
    calls = (
        ToolCall(LEARN, {"dislikes_cold": True}, executions=1),
        ToolCall(LEARN, {"dislikes_rain": True}, turn=1, executions=2),  # replayed by the framework, but learned once
        ToolCall(LEARN, {"dislikes_wind": True}, executions=0),
        ToolCall(LEARN, {"dislikes_heat": True}, error="no such user"),
        ToolCall(LEARN, {"user_id": "u"}),
        ToolCall("get_user_preferences", {"user_id": "u"}, turn=2),
    )

    details = AdaptationQuality().score(conversation("5 °C", calls, {"learned_from_conversations": 3})).details

    assert (["dislikes_cold", "dislikes_rain"], 5) == (details["preferences"], details["learned_from_conversations"])
    assert 2 == len(details["learned_in_this_conversation"])


def test_what_is_learned_overrules_the_facts() -> None:
    unlearned = ToolCall(LEARN, {"dislikes_cold": False, "prefers_indoor": True}, turn=1)

    score = AdaptationQuality().score(conversation("5 °C", (unlearned,), {"known": {"dislikes_cold": True}}))

    assert (["prefers_indoor"], 1) == (score.details["preferences"], score.details["learned_from_conversations"])


@pytest.mark.parametrize(
    ("answer", "recommended", "adapted"),
    [
        ("As you don't like rain, stay indoors, perhaps at a museum.", 0.9, 0.75),
        ("Because it rains, go to a cinema.", 0.9, 0.65),
        ("Since you dislike rain, stay home.", 0.7, 0.75),
        ("Maybe the museum, as you don't like rain.", 0.7, 0.75),
        ("As you know, it rains.", 0.2, 0.5),
    ],
)
def test_an_action_after_its_reason_is_a_recommendation(answer: str, recommended: float, adapted: float) -> None:
    weather = {"city": "Oslo", "current": {"main_condition": "Rain"}}

    asked = trial(answer, "What should I do in Oslo?", weather=weather, preferences={"dislikes_rain": True})

    assert recommended == RecommendationQuality().score(asked).value
    assert adapted == AdaptationQuality().score(asked).value
