from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from keval import ToolCall, Trial
from keval_metrics_basic import ExpectedCall, ToolCalled

MakeTrial = Callable[..., Trial]

OSLO = ToolCall("get_weather", {"city": "Oslo", "days": 3})
FAILED = ToolCall("get_location", error="no signal")


@pytest.mark.parametrize(
    ("options", "value"),
    [
        ({"tools": ("get_weather",)}, 1.0),
        ({"tools": ("get_location", "get_weather")}, 1.0),
        ({"tools": ("get_weather", "get_time")}, 0.0),
        ({"tools": ("get_weather", "get_time"), "match": "any"}, 1.0),
        ({"tools": ("get_time",), "match": "any"}, 0.0),
        ({"tools": ("GET_WEATHER",)}, 0.0),
        ({"tools": (ExpectedCall("get_weather", {"city": " oslo"}),)}, 1.0),
        ({"tools": (ExpectedCall("get_weather", {"city": "Rome"}),)}, 0.0),
        ({"tools": (ExpectedCall("get_weather", {"city": "Rome"}),), "arguments": "ignore"}, 1.0),
        ({"tools": (ExpectedCall("get_weather", {"city": "Oslo"}),), "arguments": "exact"}, 0.0),
        ({"tools": (ExpectedCall("get_weather", {"city": "Oslo", "days": 3.0}),), "arguments": "exact"}, 1.0),
        ({"tools": ("get_weather",), "arguments": "exact"}, 1.0),
        ({"never": ("delete_all",)}, 1.0),
        ({"never": ("get_location",)}, 0.0),
        ({"never": (ExpectedCall("get_weather", {"city": "Rome"}),)}, 1.0),
        ({"tools": ("get_weather",), "never": ("get_location",)}, 0.0),
        ({"tools": ()}, 0.0),
    ],
)
def test_options(options: dict[str, Any], value: float, trial: MakeTrial) -> None:
    assert value == ToolCalled(**options).score(trial(calls=[FAILED, OSLO])).value


def test_the_reason_says_what_was_called(trial: MakeTrial) -> None:
    metric = ToolCalled(tools=(ExpectedCall("get_weather", {"city": "Rome"}), "get_location"))

    score = metric.score(trial(calls=[FAILED, OSLO]))

    assert "no call of get_weather(city='Rome'); called: get_location, get_weather(city='Oslo', days=3)" == score.reason
    assert {
        "called": ["get_location", "get_weather(city='Oslo', days=3)"],
        "failed": 1,
        "missing": ["get_weather(city='Rome')"],
        "forbidden": [],
    } == score.details


def test_the_reason_names_the_forbidden_call(trial: MakeTrial) -> None:
    score = ToolCalled(never=("get_weather",)).score(trial(calls=[OSLO]))

    assert "called get_weather(city='Oslo', days=3), which must never be called" == score.reason


@pytest.mark.parametrize(
    ("fact", "value"),
    [
        (["get_weather", "get_location"], 1.0),
        ("get_weather", 1.0),
        ({"name": "get_weather", "arguments": {"city": "oslo"}}, 1.0),
        ([{"name": "get_weather", "arguments": {"city": "Rome"}}], 0.0),
        ([{"name": "get_weather"}, "get_time"], 0.0),
        ([], 0.0),
        (["get_weather", 5], None),
        ([{"tool": "get_weather"}], None),
        ([{"name": "get_weather", "args": {"city": "Rome"}}], None),
        ([{"name": "get_weather", "arguments": ["Oslo"]}], None),
        ([""], None),
        (5, None),
        (None, None),
    ],
)
def test_the_reference_is_the_samples_tools(fact: Any, value: float | None, trial: MakeTrial) -> None:
    assert value == ToolCalled().score(trial(calls=[FAILED, OSLO], facts={"tools": fact})).value


def test_an_empty_list_is_met_by_no_call(trial: MakeTrial) -> None:
    score = ToolCalled().score(trial(facts={"tools": []}))

    assert (1.0, "called: nothing") == (score.value, score.reason)


def test_without_tools_to_look_for_the_calls_are_unscored(trial: MakeTrial) -> None:
    score = ToolCalled().score(trial(calls=[OSLO]))

    wanted = "a list of tool names or of {name, arguments}"
    missing = "nothing to compare with: the sample has no facts.tools"
    assert (None, f"{missing}; give it {wanted}, or the metric `tools` or `never`") == (score.value, score.reason)


@pytest.mark.parametrize("unlisted", [2, None])
@pytest.mark.parametrize(
    ("options", "value"),
    [
        ({"tools": ("get_weather",)}, 1.0),
        ({"tools": ("get_weather", "get_time"), "match": "any"}, 1.0),
        ({"tools": ("get_weather", "get_time")}, None),
        ({"tools": ("get_weather",), "never": ("delete_all",)}, None),
        ({"never": ("delete_all",)}, None),
        ({"never": ("get_weather",)}, 0.0),
        ({"tools": ()}, 0.0),
    ],
)
def test_calls_that_are_only_counted_leave_open_what_they_could_change(
    options: dict[str, Any], value: float | None, unlisted: int | None, trial: MakeTrial
) -> None:
    assert value == ToolCalled(**options).score(trial(calls=[OSLO], unlisted=unlisted)).value


def test_no_listed_calls_are_not_no_calls(trial: MakeTrial) -> None:
    score = ToolCalled(tools=()).score(trial(unlisted=1))

    reason = "not all of the trial's tool calls are known: 1 more is only counted; called: nothing"
    assert (None, reason) == (score.value, score.reason)


@pytest.mark.parametrize("name", ["tools", "never"])
def test_a_name_is_not_empty(name: str) -> None:
    options: dict[str, Any] = {name: ("get_weather", "")}

    with pytest.raises(ValueError, match=f"'{name}' must hold names of tools, got ''"):
        ToolCalled(**options)
