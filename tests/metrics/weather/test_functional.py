"""The functional metrics besides accuracy: the document's rules and worked examples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from keval import Message, Sample, ToolCall, Transcript, Trial
from keval_metrics_weather import (
    ActionPlanning,
    AdaptationQuality,
    ContextRetention,
    ErrorRecovery,
    RecommendationQuality,
    ResponseTime,
    TaskCompletion,
    ToolCallCount,
)

MakeTrial = Callable[..., Trial]
Weather = Mapping[str, Any]

COMPLETE = "The temperature in Helsinki is 15°C with light rain. You should bring an umbrella."
RECOMMENDING = "I recommend bringing an umbrella because it's raining, and a jacket since it's 10°C."
REMEMBERING = "It's 5°C in Helsinki. Since you mentioned disliking cold weather, I'd recommend staying indoors."
ADAPTED = "It's quite cold at 5°C. I remember you don't like cold weather, so I'd recommend a warm jacket and layers."
PLANNED = "The temperature is 20°C. Based on this, I recommend a walk."
RECOVERING = (
    "I couldn't retrieve the current weather data. However, you might want to check the forecast online, or I can help"
    " with general weather advice."
)


def found_for(score: Any) -> dict[str, float]:
    return {point["what"]: point["points"] for point in score.details["points"]}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (COMPLETE, 1.0),  # the document's example
        ("The temperature in Helsinki is 15°C.", 0.7),
        ("It is raining in Helsinki right now.", 0.5),
        ("You should bring an umbrella in Helsinki today.", 0.7),
        ("Sorry, I couldn't get the weather.", 0.2),
        ("I don't have live weather data.", 0.2),
        ("Rain.", 0.3),
        ("Let me tell you about the history of Finland.", 0.3),
        ("", 0.1),
        ("The train leaves at 10:30 on 2026-06-18 from track 5.", 0.3),
        ("There was no error: the temperature is 15 °C.", 0.7),
    ],
)
def test_task_completion(answer: str, expected: float, trial: MakeTrial) -> None:
    assert expected == TaskCompletion().score(trial(answer)).value


def test_task_completion_names_what_it_found(trial: MakeTrial) -> None:
    score = TaskCompletion().score(trial(COMPLETE))

    assert (
        "0.5 to begin with, +0.2 figures (15°C), +0.2 recommendations (should, umbrella), +0.1 substance, 82 characters"
        == score.reason
    )


def test_task_completion_wants_no_weather_in_a_chat(trial: MakeTrial) -> None:
    score = TaskCompletion().score(trial("You're welcome, any time!", "Thanks a lot!"))

    assert 0.5 == score.value


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
        ("No, you won't need an umbrella: it stays dry.", "Do I need an umbrella in Oslo?", 0.7),
        ("You won't need a coat, because it's warm.", "What should I wear?", 0.9),
        ("You won't need a coat, but take a hat.", "What should I wear?", 0.7),
        ("No, it stays dry.", "Do I need an umbrella?", 0.5),
        ("I don't recommend going out.", "Should I go for a walk?", 0.5),
        ("I can't recommend anything.", "What should I wear?", 0.2),
        ("I have no recommendation.", "What should I wear?", 0.2),
        ("I don't know whether you need an umbrella.", "Do I need an umbrella?", 0.2),
        ("I could not find out if you should take a coat.", "Should I take a coat?", 0.2),
        ("If it stays dry, you won't need an umbrella.", "Do I need an umbrella?", 0.7),
        ("No, sorry, I couldn't get the weather.", "Do I need an umbrella?", 0.2),
        ("No.", "Do I need an umbrella?", 0.5),
        ("No idea.", "Do I need an umbrella?", 0.2),
    ],
)
def test_recommendation_quality(answer: str, question: str, expected: float, trial: MakeTrial) -> None:
    score = RecommendationQuality().score(trial(answer, question))

    assert (expected, False) == (score.value, score.neutral)


def test_an_answer_that_must_first_ask_for_the_city_is_not_blamed_for_it(trial: MakeTrial) -> None:
    asked = trial("Which city are you in?", "Should I take a coat?")

    scores = [metric.score(asked) for metric in (RecommendationQuality(), ActionPlanning())]

    assert [(0.5, True)] * 2 == [(score.value, score.neutral) for score in scores]


def test_recommendation_quality_names_what_was_advised_against(trial: MakeTrial) -> None:
    score = RecommendationQuality().score(trial("No, you won't need an umbrella.", "Do I need an umbrella in Oslo?"))

    assert ("0.5 to begin with, +0.2 specific items (umbrella)", ["umbrella"]) == (
        score.reason,
        score.details["recommendations"],
    )


def test_recommendation_quality_is_neutral_when_none_was_asked_for_or_given(trial: MakeTrial) -> None:
    score = RecommendationQuality().score(trial("15°C"))

    assert (0.5, True) == (score.value, score.neutral)


HATES_COLD = [("I hate cold weather", "Noted.")]
PARIS = [("What's the weather in Paris tomorrow?", "Paris gets 15°C tomorrow.")]


@pytest.mark.parametrize(
    ("history", "question", "answer", "expected"),
    [
        (HATES_COLD, "What's the weather in Helsinki?", REMEMBERING, 0.65),  # the document's example
        (HATES_COLD, "What's the weather in Helsinki?", "It's 5°C in Helsinki.", 0.5),
        (HATES_COLD, "What should I wear in Helsinki?", "Take a coat.", 0.35),
        (PARIS, "Should I take a coat?", "Paris will be mild tomorrow, no coat needed.", 0.85),
        (PARIS, "Should I take a coat?", "It's cold, so yes.", 0.15),
        (PARIS, "Should I take a coat?", "Which city are you in?", 0.5),  # it refers to nothing before
        (PARIS, "And on Sunday?", "On Sunday it's 16°C in Paris.", 0.7),
        (PARIS, "And on Sunday?", "On Sunday it's 16°C.", 0.3),
        (PARIS, "And in London?", "London gets 17°C tomorrow.", 0.65),
        ([("Weather in São Paulo?", "25°C")], "And later?", "Sao Paulo stays warm.", 0.7),
        (PARIS, "Tomorrow?", "Which city?", 0.3),
        (PARIS, "What's it like?", "Which city?", 0.15),
        (PARIS, "How's it over there?", "Which city?", 0.15),
        (PARIS, "What could we do?", "Take a walk.", 0.15),
        (PARIS, "Do you remember where I am?", "No.", 0.15),
        (PARIS, "Thank you, that's all.", "Enjoy Paris!", 0.7),
    ],
)
def test_context_retention(
    history: list[tuple[str, str]], question: str, answer: str, expected: float, trial: MakeTrial
) -> None:
    assert expected == ContextRetention().score(trial(answer, question, history=history)).value


@pytest.mark.parametrize(
    ("question", "answer"),
    [("Thank you, that's all.", "You're welcome!"), ("Write a poem about love", "Roses are red."), ("Bye!", "")],
)
def test_context_retention_is_neutral_where_the_history_is_not_wanted(
    question: str, answer: str, trial: MakeTrial
) -> None:
    history = [("I hate rain. Weather in Oslo tomorrow?", "It rains in Oslo tomorrow.")]

    score = ContextRetention().score(trial(answer, question, history=history))

    assert (0.5, True) == (score.value, score.neutral)


@pytest.mark.parametrize("history", [(), [("Hello", "Hi!")]])
def test_context_retention_is_neutral_without_anything_to_remember(history: Any, trial: MakeTrial) -> None:
    score = ContextRetention().score(trial("It's 5°C in Helsinki.", history=history))

    assert (0.5, True) == (score.value, score.neutral)


FLAT = {"dislikes_cold": True, "learned_from_conversations": 3}
NESTED_GADK = {"weather_preferences": {"dislikes_cold": True}, "learned_from_conversations": 3}
NESTED_MS = {
    "user": {"preferences": {"weather": {"dislikes_cold": {"value": True}}}, "learned_from_conversations": [1, 2, 3]}
}


@pytest.mark.parametrize("preferences", [FLAT, NESTED_GADK, NESTED_MS])
def test_adaptation_quality_of_the_documents_example(preferences: Any, trial: MakeTrial) -> None:
    weather = {"city": "Helsinki", "current": {"temperature": 5}}

    score = AdaptationQuality().score(trial(ADAPTED, weather=weather, preferences=preferences))

    assert 0.75 == score.value
    assert (["dislikes_cold"], 3) == (score.details["preferences"], score.details["learned_from_conversations"])


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
    preferences: Any, answer: str, expected: float, trial: MakeTrial
) -> None:
    assert expected == AdaptationQuality().score(trial(answer, preferences=preferences)).value


@pytest.mark.parametrize(
    "preferences", [None, {}, [], "none", {"dislikes_cold": False}, {"dislikes_cold": "no"}, {"dislikes_wind": True}]
)
def test_adaptation_quality_is_neutral_without_a_preference_that_matters(preferences: Any, trial: MakeTrial) -> None:
    score = AdaptationQuality().score(trial("It's 5 °C.", preferences=preferences))

    assert (0.5, True) == (score.value, score.neutral)


def test_adaptation_quality_holds_the_facts_above_the_answer(trial: MakeTrial) -> None:
    weather = {"city": "Helsinki", "current": {"temperature": 25, "main_condition": "Clear"}}
    preferences = {"dislikes_cold": True, "dislikes_rain": True}

    score = AdaptationQuality().score(
        trial("It's 5 °C, rainy: coat, umbrella.", weather=weather, preferences=preferences)
    )

    assert (0.5, True) == (score.value, score.neutral)


def test_adaptation_quality_judges_by_what_the_agent_learned(trial: MakeTrial) -> None:
    name = "update_user_preferences_from_insight"
    learned = ToolCall(name, {"user_id": "u1", "dislikes_cold": True, "dislikes_rain": None})
    failed = ToolCall(name, {"dislikes_cold": True}, error="no such user")

    with_it = AdaptationQuality().score(trial("5 °C: wear a coat.", calls=[learned]))
    without = AdaptationQuality().score(trial("5 °C: wear a coat.", calls=[failed]))

    assert (0.65, False, 0.5, True) == (with_it.value, with_it.neutral, without.value, without.neutral)


LEARN = "update_user_preferences_from_insight"


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
    assert {
        "preferences": ["dislikes_cold"],
        "learned_from_conversations": 1,
        "learned_in_this_conversation": [{"dislikes_cold": True, "insight_text": "hates cold"}],
    }.items() <= score.details.items()


def test_what_is_learned_counts_with_what_was_known() -> None:
    calls = (
        ToolCall(LEARN, {"dislikes_cold": True}, executions=1),
        ToolCall(LEARN, {"dislikes_rain": True}, turn=1, executions=2),  # replayed by the framework, but learned once
        ToolCall(LEARN, {"dislikes_wind": True}, executions=0),
        ToolCall(LEARN, {"dislikes_heat": True}, error="no such user"),
        ToolCall(LEARN, {"user_id": "u"}),
        ToolCall("get_user_preferences", {"user_id": "u"}, turn=2),
    )

    score = AdaptationQuality().score(conversation("5 °C", calls, {"learned_from_conversations": 3}))

    assert (["dislikes_cold", "dislikes_rain"], 5, 2) == (
        score.details["preferences"],
        score.details["learned_from_conversations"],
        len(score.details["learned_in_this_conversation"]),
    )


def test_what_is_learned_overrules_the_facts() -> None:
    unlearned = ToolCall(LEARN, {"dislikes_cold": False, "prefers_indoor": True}, turn=1)

    score = AdaptationQuality().score(conversation("5 °C", (unlearned,), {"known": {"dislikes_cold": True}}))

    assert (["prefers_indoor"], 1) == (score.details["preferences"], score.details["learned_from_conversations"])


@pytest.mark.parametrize(
    ("seconds", "expected", "speed"),
    [
        (0.0, 1.0, "excellent"),
        (1.999, 1.0, "excellent"),
        (2.0, 0.9, "good"),
        (3.5, 0.8, "good"),  # the document's example
        (5.0, 0.7, "acceptable"),
        (7.5, 0.6, "acceptable"),
        (10.0, 0.5, "slow"),
        (15.0, 0.4, "slow"),
        (20.0, 0.3, "slow"),
        (500.0, 0.3, "slow"),
    ],
)
def test_response_time(seconds: float, expected: float, speed: str, trial: MakeTrial) -> None:
    score = ResponseTime().score(trial("15°C", duration=seconds))

    assert (expected, speed) == (score.value, score.details["speed"])
    assert f"{seconds:.4g} s, of {speed} speed" == score.reason


def test_response_times_scores_are_options(trial: MakeTrial) -> None:
    metric = ResponseTime(
        slowest=30.0, excellent_value=0.95, good_value=0.8, acceptable_value=0.6, slow_value=0.4, slowest_value=0.0
    )

    scores = [metric.score(trial("15°C", duration=seconds)).value for seconds in (1, 2, 3.5, 5, 10, 20, 30, 60)]

    assert [0.95, 0.8, 0.7, 0.6, 0.4, 0.2, 0.0, 0.0] == scores


def test_response_time_is_that_of_the_last_turn() -> None:
    sample = Sample("s", "Hi", turns=("Weather in Oslo?",))
    timed = Transcript(duration=12.0, turn_durations=(11.0, 1.0))
    untimed = Transcript(duration=12.0)

    last = ResponseTime().score(Trial("t", sample, "a", "c", 1, timed))
    unknown = ResponseTime().score(Trial("t", sample, "a", "c", 1, untimed))

    assert (1.0, False, 0.5, True) == (last.value, last.neutral, unknown.value, unknown.neutral)


@pytest.mark.parametrize("seconds", [None, float("nan"), float("inf"), -1.0])
def test_response_time_is_neutral_without_timing(seconds: float | None, trial: MakeTrial) -> None:
    score = ResponseTime().score(trial("15°C", duration=seconds))

    assert (0.5, True) == (score.value, score.neutral)


@pytest.mark.parametrize(
    ("count", "expected"), [(0, 0.5), (1, 1.0), (2, 1.0), (3, 0.8), (4, 0.8), (5, 0.6), (6, 0.6), (7, 0.4), (70, 0.4)]
)
def test_tool_call_count(count: int, expected: float, trial: MakeTrial) -> None:
    score = ToolCallCount().score(trial("15°C", calls=[ToolCall("get_current_weather")] * count))

    assert (expected, count == 0, count) == (score.value, score.neutral, score.details["count"])


def test_tool_call_count_counts_what_servers_ran(trial: MakeTrial) -> None:
    calls = [
        ToolCall("a", executions=2),
        ToolCall("b", executions=0, error="unknown tool"),
        ToolCall("c", executions=None),
    ]

    score = ToolCallCount().score(trial("15°C", calls=calls))

    assert {
        "count": 3,
        "listed": 3,
        "only_counted": 0,
        "asked_for": 3,
        "failed": 1,
        "names": ["a", "b", "c"],
    } == score.details


def test_tool_call_count_tells_calls_that_reached_no_server_from_none(trial: MakeTrial) -> None:
    score = ToolCallCount().score(trial("15°C", calls=[ToolCall("a", executions=0, error="unknown tool")]))

    assert (True, "no tool call reached a server", 1) == (score.neutral, score.reason, score.details["asked_for"])


def test_tool_call_count_is_that_of_the_last_turn() -> None:
    calls = (ToolCall("a", turn=0), ToolCall("a", turn=0), ToolCall("a", turn=0), ToolCall("b", turn=1))
    sample = Sample("s", "Hi", turns=("Weather in Oslo?",))

    score = ToolCallCount().score(Trial("t", sample, "a", "c", 1, Transcript(tool_calls=calls)))

    assert 1 == score.details["count"]


@pytest.mark.parametrize(
    ("listed", "unlisted", "expected", "reason"),
    [
        (0, 2, 1.0, "2 tool calls, 2 of them only counted: optimal"),
        (1, 3, 0.8, "4 tool calls, 3 of them only counted: good"),
        (1, None, 1.0, "1 tool call: optimal"),
        (0, None, 0.5, "not known whether tools were called"),
        (0, 0, 0.5, "no tool calls"),
        (0, -1, 0.5, "no tool calls"),
    ],
)
def test_tool_call_count_adds_calls_that_are_only_counted(
    listed: int, unlisted: int | None, expected: float, reason: str, trial: MakeTrial
) -> None:
    score = ToolCallCount().score(trial("15°C", calls=[ToolCall("a")] * listed, unlisted=unlisted))

    assert (expected, reason, expected == 0.5) == (score.value, score.reason, score.neutral)
    assert (listed, unlisted and max(unlisted, 0)) == (score.details["listed"], score.details["only_counted"])


def test_a_trial_without_a_transcript_tells_nothing_of_tool_calls() -> None:
    score = ToolCallCount().score(Trial("t", Sample("s", "Weather in Oslo?"), "a", "c", 1))

    assert (True, "not known whether tools were called") == (score.neutral, score.reason)


CURRENT = ToolCall("get_current_weather", {"city": "Helsinki"}, result="{}")
FORECAST = ToolCall("get_weather_forecast", {"city": "Helsinki"}, result="{}")
FAILED = ToolCall("get_current_weather", error="timeout")
PREFERENCES = ToolCall("weather_get_user_preferences", result="{}")
SEARCH = ToolCall("web_search", {"query": "helsinki"}, result="{}")


@pytest.mark.parametrize(
    ("answer", "question", "calls", "expected"),
    [
        (PLANNED, "What should I do in Helsinki?", [], 0.7),  # the document's example
        (PLANNED, "What should I do in Helsinki?", [CURRENT], 0.9),
        ("It's 20°C.", "Weather in Helsinki?", [CURRENT], 0.5),
        ("I recommend a coat. It's 5°C.", "Weather in Helsinki?", [CURRENT], 0.4),
        ("It's 20°C.", "Weather in Helsinki tomorrow?", [CURRENT], 0.3),
        ("It's 20°C.", "Weather in Helsinki tomorrow?", [FORECAST], 0.5),
        ("First, bring a coat.", "Weather in Helsinki?", [], 0.0),
        ("It's 20°C.", "Weather in Helsinki?", [FAILED], 0.0),
        ("It's 20°C.", "Weather in Helsinki?", [FAILED, CURRENT], 0.5),
        ("It's 20°C.", "Weather in Helsinki?", [PREFERENCES], 0.0),
        ("It's 20°C.", "Weather in Helsinki?", [PREFERENCES, CURRENT], 0.5),
        ("It's 20°C.", "Weather in Helsinki?", [SEARCH], 0.0),
        ("It's 20°C.", "Weather in Helsinki?", [ToolCall("getWeather")], 0.5),
    ],
)
def test_action_planning(answer: str, question: str, calls: list[ToolCall], expected: float, trial: MakeTrial) -> None:
    tools = ("get_current_weather", "get_weather_forecast")

    assert expected == ActionPlanning().score(trial(answer, question, calls=calls, tools=tools)).value


def test_action_planning_takes_the_data_tools_it_is_told(trial: MakeTrial) -> None:
    searched = trial("It's 20°C.", "Weather in Helsinki?", calls=[SEARCH])

    score = ActionPlanning(data_tools=("Search",)).score(searched)

    assert "0 to begin with, +0.3 weather data (web_search), +0.2 fitting tools (web_search)" == score.reason


@pytest.mark.parametrize(
    ("answer", "question"), [("Noted.", "I hate the rain."), ("Which city are you in?", "Should I take a coat?")]
)
def test_action_planning_takes_a_look_at_preferences_for_no_plan(answer: str, question: str, trial: MakeTrial) -> None:
    score = ActionPlanning().score(trial(answer, question, calls=[PREFERENCES]))

    assert (0.5, True) == (score.value, score.neutral)


@pytest.mark.parametrize(
    ("answer", "calls", "unlisted", "expected"),
    [
        (PLANNED, [], 1, 0.7),  # which tool it was is not known, so whether it fits is not either
        (PLANNED, [], None, 0.7),
        (PLANNED, [CURRENT], 1, 0.9),
        ("Take a walk.", [], 1, 0.3),
        ("Take a walk.", [], None, 0.0),
        ("It's 20°C.", [FAILED], 1, 0.3),
        ("It's 20°C.", [FAILED], None, 0.3),
        ("It's 20°C.", [FAILED], 0, 0.0),
    ],
)
def test_action_planning_with_calls_that_are_only_counted(
    answer: str, calls: list[ToolCall], unlisted: int | None, expected: float, trial: MakeTrial
) -> None:
    score = ActionPlanning().score(trial(answer, "What should I do in Helsinki?", calls=calls, unlisted=unlisted))

    assert (expected, unlisted) == (score.value, score.details["only_counted"])


def test_action_planning_is_neutral_when_nothing_was_to_plan(trial: MakeTrial) -> None:
    score = ActionPlanning().score(trial("You're welcome!", "Thanks!"))

    assert (0.5, True) == (score.value, score.neutral)


@pytest.mark.parametrize(
    ("answer", "question", "calls", "expected"),
    [
        (RECOVERING, "What's the weather in Helsinki?", [], 1.0),  # the document's example
        ("Sorry, an error occurred.", "Weather in Helsinki?", [], 0.3),
        (
            "I'm sorry, something went wrong with the weather service while I was asking it.",
            "Weather in Oslo?",
            [],
            0.7,
        ),
        ("The forecast is unavailable. The service that I ask for it does not answer.", "Weather in Oslo?", [], 0.7),
        ("Which city do you mean?", "What's the weather?", [], 0.7),
        ("It's 20°C.", "Weather in Helsinki?", [FAILED], 0.3),
        ("It's 20°C.", "Weather in Helsinki?", [FAILED, CURRENT], 0.8),
        ("It's 20°C.", "Weather in Helsinki?", [FAILED, SEARCH], 0.8),
        ("It's 20°C.", "Weather in Helsinki?", [PREFERENCES, FAILED], 0.3),
        ("It's 20°C.", "Weather in Helsinki?", [FAILED, PREFERENCES], 0.3),
        ("It's 20°C.", "Weather in Helsinki?", [CURRENT, FAILED], 0.3),
        ("It's 20°C.", "Weather in Helsinki?", [FAILED, CURRENT, FAILED], 0.3),
    ],
)
def test_error_recovery(answer: str, question: str, calls: list[ToolCall], expected: float, trial: MakeTrial) -> None:
    score = ErrorRecovery().score(trial(answer, question, calls=calls))

    assert (expected, False) == (score.value, score.neutral)


def test_error_recovery_counts_what_the_document_counts_in_its_example(trial: MakeTrial) -> None:
    score = ErrorRecovery().score(trial(RECOVERING))

    counted = found_for(score)

    assert (0.3, 0.2) == (counted["error handled with alternatives"], counted["missing data acknowledged"])


@pytest.mark.parametrize(
    ("answer", "unlisted", "expected"),
    [
        ("It's 20°C.", 1, 0.8),
        ("It's 20°C.", None, 0.5),  # it may have recovered
        ("It's 20°C.", 0, 0.3),
        ("Have a nice day.", 1, 0.3),
        ("Have a nice day.", None, 0.3),
    ],
)
def test_error_recovery_with_calls_that_are_only_counted(
    answer: str, unlisted: int | None, expected: float, trial: MakeTrial
) -> None:
    score = ErrorRecovery().score(trial(answer, calls=[FAILED], unlisted=unlisted))

    assert (expected, False) == (score.value, score.neutral)


def test_error_recovery_is_neutral_when_nothing_went_wrong(trial: MakeTrial) -> None:
    score = ErrorRecovery().score(trial("It's 20°C.", calls=[CURRENT]))

    assert (0.5, True) == (score.value, score.neutral)


def test_later_turns_of_a_conversation_remember_its_earlier_ones() -> None:
    sample = Sample("s", "I hate the rain. Weather in Oslo?", turns=("What should I wear?",))

    def said(final: str) -> Trial:
        messages = (
            Message("user", sample.question, 0),
            Message("assistant", "It rains in Oslo.", 0),
            Message("user", sample.turns[0], 1),
            Message("assistant", final, 1),
        )
        return Trial("t", sample, "a", "c", 1, Transcript(messages=messages))

    remembers = ContextRetention().score(said("Oslo is wet and you hate the rain, so take an umbrella."))
    forgets = ContextRetention().score(said("Take a hat."))

    assert (0.85, 0.15) == (remembers.value, forgets.value)
