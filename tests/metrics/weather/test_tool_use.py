"""Response time, tool calls, planning and recovery: the document's rules and worked examples."""

from __future__ import annotations

import pytest

from keval import Sample, ToolCall, Transcript, Trial
from keval_metrics_weather.behaviour import AmbiguityHandling
from keval_metrics_weather.tool_use import ActionPlanning, ErrorRecovery, ResponseTime, ToolCallCount
from tests.metrics.weather.conftest import make_trial as trial

PLANNED = "The temperature is 20°C. Based on this, I recommend a walk."
RECOVERING = (
    "I couldn't retrieve the current weather data. However, you might want to check the forecast online, or I can help"
    " with general weather advice."
)
CURRENT = ToolCall("get_current_weather", {"city": "Helsinki"}, result="{}")
FORECAST = ToolCall("get_weather_forecast", {"city": "Helsinki"}, result="{}")
FAILED = ToolCall("get_current_weather", error="timeout")
PREFERENCES = ToolCall("weather_get_user_preferences", result="{}")
SEARCH = ToolCall("web_search", {"query": "helsinki"}, result="{}")


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
        (500.0, 0.3, "slow"),
    ],
)
def test_response_time(seconds: float, expected: float, speed: str) -> None:
    score = ResponseTime().score(trial("15°C", duration=seconds))

    assert (expected, f"{seconds:.4g} s, of {speed} speed") == (score.value, score.reason)


def test_response_time_is_that_of_the_last_turn() -> None:
    sample = Sample("s", "Hi", turns=("Weather in Oslo?",))
    timed, untimed = Transcript(duration=12.0, turn_durations=(11.0, 1.0)), Transcript(duration=12.0)

    last, unknown = (ResponseTime().score(Trial("t", sample, "a", "c", 1, each)) for each in (timed, untimed))

    assert (1.0, False, 0.5, True) == (last.value, last.neutral, unknown.value, unknown.neutral)


@pytest.mark.parametrize("seconds", [None, float("nan"), float("inf"), -1.0])
def test_response_time_is_neutral_without_timing(seconds: float | None) -> None:
    assert ResponseTime().score(trial("15°C", duration=seconds)).neutral


@pytest.mark.parametrize(
    ("count", "expected"), [(0, 0.5), (1, 1.0), (2, 1.0), (3, 0.8), (4, 0.8), (5, 0.6), (6, 0.6), (7, 0.4), (70, 0.4)]
)
def test_tool_call_count(count: int, expected: float) -> None:
    score = ToolCallCount().score(trial("15°C", calls=[ToolCall("get_current_weather")] * count))

    assert (expected, count == 0, count) == (score.value, score.neutral, score.details["count"])


def test_tool_call_count_counts_what_servers_ran() -> None:
    unknown = ToolCall("b", executions=0, error="unknown tool")

    score = ToolCallCount().score(trial("15°C", calls=[ToolCall("a", executions=2), unknown, ToolCall("c")]))
    none = ToolCallCount().score(trial("15°C", calls=[unknown]))

    counts = {"count": 3, "listed": 3, "only_counted": 0, "asked_for": 3, "failed": 1, "names": ["a", "b", "c"]}
    assert counts == score.details
    assert (True, "no tool call reached a server", 1) == (none.neutral, none.reason, none.details["asked_for"])


def test_tool_call_count_is_that_of_the_last_turn() -> None:
    calls = (ToolCall("a", turn=0), ToolCall("a", turn=0), ToolCall("b", turn=1))
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
    listed: int, unlisted: int | None, expected: float, reason: str
) -> None:
    score = ToolCallCount().score(trial("15°C", calls=[ToolCall("a")] * listed, unlisted=unlisted))

    assert (expected, reason, expected == 0.5) == (score.value, score.reason, score.neutral)
    assert (listed, unlisted and max(unlisted, 0)) == (score.details["listed"], score.details["only_counted"])


def test_a_trial_without_a_transcript_tells_nothing_of_tool_calls() -> None:
    score = ToolCallCount().score(Trial("t", Sample("s", "Weather in Oslo?"), "a", "c", 1))

    assert (True, "not known whether tools were called") == (score.neutral, score.reason)


@pytest.mark.parametrize(
    ("answer", "question", "calls", "expected"),
    [
        (PLANNED, "What should I do in Helsinki?", [], 0.7),  # the document's example
        (PLANNED, "What should I do in Helsinki?", [CURRENT], 0.9),
        ("It's 20°C.", "Weather in Helsinki?", [CURRENT], 0.5),
        ("I recommend a coat. It's 5°C.", "Weather in Helsinki?", [CURRENT], 0.4),
        ("It's 20°C.", "Weather in Helsinki tomorrow?", [CURRENT], 0.3),
        ("It's 20°C.", "Weather in Helsinki tomorrow?", [FORECAST], 0.5),
        ("It's 20°C.", "Helsinki this afternoon: cold?", [CURRENT], 0.5),
        ("First, bring a coat.", "Weather in Helsinki?", [], 0.0),
        ("It's 20°C.", "Weather in Helsinki?", [FAILED], 0.0),
        ("It's 20°C.", "Weather in Helsinki?", [FAILED, CURRENT], 0.5),
        ("It's 20°C.", "Weather in Helsinki?", [PREFERENCES], 0.0),
        ("It's 20°C.", "Weather in Helsinki?", [SEARCH], 0.0),
        ("It's 20°C.", "Weather in Helsinki?", [ToolCall("getWeather")], 0.5),
    ],
)
def test_action_planning(answer: str, question: str, calls: list[ToolCall], expected: float) -> None:
    tools = ("get_current_weather", "get_weather_forecast")

    assert expected == ActionPlanning().score(trial(answer, question, calls=calls, tools=tools)).value


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Yes, take an umbrella. It rains in Oslo at 5 °C. I recommend a coat.", 0.8),
        ("Yes, take an umbrella. It rains in Oslo at 5 °C.", 0.5),
        ("Yes, I recommend an umbrella, as it rains.", 0.5),
        ("Take an umbrella. It rains in Oslo at 5 °C.", 0.4),
        ("Yes: it rains in Oslo at 5 °C. I recommend an umbrella.", 0.8),
        ("Yes, of course. Take an umbrella. It rains.", 0.4),
    ],
)
def test_a_direct_answer_may_come_before_the_weather(answer: str, expected: float) -> None:
    assert expected == ActionPlanning().score(trial(answer, "Do I need an umbrella in Oslo?", calls=[CURRENT])).value


def test_action_planning_takes_the_data_tools_it_is_told() -> None:
    searched = trial("It's 20°C.", "Weather in Helsinki?", calls=[SEARCH])

    score = ActionPlanning(data_tools=("Search",)).score(searched)

    assert "0 to begin with, +0.3 weather data (web_search), +0.2 fitting tools (web_search)" == score.reason


@pytest.mark.parametrize(
    ("answer", "question"),
    [("Noted.", "I hate the rain."), ("Which city?", "Should I take a coat?"), ("You're welcome!", "Thanks!")],
)
def test_action_planning_is_neutral_when_nothing_was_to_plan(answer: str, question: str) -> None:
    assert ActionPlanning().score(trial(answer, question, calls=[PREFERENCES])).neutral


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
    answer: str, calls: list[ToolCall], unlisted: int | None, expected: float
) -> None:
    score = ActionPlanning().score(trial(answer, "What should I do in Helsinki?", calls=calls, unlisted=unlisted))

    assert (expected, unlisted) == (score.value, score.details["only_counted"])


@pytest.mark.parametrize(
    ("answer", "question", "calls", "expected"),
    [
        (RECOVERING, "What's the weather in Helsinki?", [], 1.0),  # the document's example
        ("Sorry, an error occurred.", "Weather in Helsinki?", [], 0.3),
        ("Something went wrong with the weather service while I was asking it.", "Weather in Oslo?", [], 0.7),
        ("The forecast is unavailable. The service that I ask for it does not answer.", "Weather in Oslo?", [], 0.7),
        ("Which city do you mean?", "What's the weather?", [], 0.7),
        ("It's 20°C.", "Weather in Helsinki?", [FAILED], 0.3),
        ("It's 20°C.", "Weather in Helsinki?", [FAILED, CURRENT], 0.8),
        ("It's 20°C.", "Weather in Helsinki?", [FAILED, SEARCH], 0.8),
        ("It's 20°C.", "Weather in Helsinki?", [FAILED, PREFERENCES], 0.3),
        ("It's 20°C.", "Weather in Helsinki?", [FAILED, CURRENT, FAILED], 0.3),
    ],
)
def test_error_recovery(answer: str, question: str, calls: list[ToolCall], expected: float) -> None:
    score = ErrorRecovery().score(trial(answer, question, calls=calls))

    assert (expected, False) == (score.value, score.neutral)


def test_error_recovery_counts_what_the_document_counts_in_its_example() -> None:
    points = ErrorRecovery().score(trial(RECOVERING)).details["points"]

    counted = {point["what"]: point["points"] for point in points}
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
def test_error_recovery_with_calls_that_are_only_counted(answer: str, unlisted: int | None, expected: float) -> None:
    assert expected == ErrorRecovery().score(trial(answer, calls=[FAILED], unlisted=unlisted)).value


def test_error_recovery_is_neutral_when_nothing_went_wrong() -> None:
    assert ErrorRecovery().score(trial("It's 20°C.", calls=[CURRENT])).neutral


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Please provide me with the weather data for Oslo so that I can recommend clothes.", None),
        ("Could you share the current temperature details? Then I can help.", None),
        ("There was an issue in fetching the forecast for Oslo.", 0.5),
        ("There was an issue in fetching the forecast for Oslo. Try again later, or see yr.no.", 1.0),
    ],
)
def test_asking_for_the_weather_recovers_nothing_and_an_issue_in_fetching_acknowledges_an_error(
    answer: str, expected: float | None
) -> None:
    score = ErrorRecovery().score(trial(answer, "What should I wear in Oslo?"))

    assert (0.5 if expected is None else expected, expected is None) == (score.value, score.neutral)
    assert AmbiguityHandling().score(trial(answer, "What should I wear in Oslo?")).neutral
