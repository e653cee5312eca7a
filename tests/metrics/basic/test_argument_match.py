from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from keval import ToolCall, Trial
from keval_metrics_basic import ArgumentMatch, ExpectedCall

MakeTrial = Callable[..., Trial]

OSLO = ToolCall("get_weather", {"city": "Oslo", "days": 3})
ROME = ToolCall("forecast", {"city": "Rome", "days": 3}, error="down", tool="get_weather")


def asked(**arguments: Any) -> ExpectedCall:
    return ExpectedCall("get_weather", arguments)


@pytest.mark.parametrize(
    ("expected", "how", "value"),
    [
        ([asked(city="oslo", days=3.0)], "subset", 1.0),
        ([asked(city="Rome", days=3)], "subset", 1.0),
        ([asked(city="Oslo", days=5)], "subset", 0.5),
        ([asked(city="Oslo")], "subset", 1.0),
        ([asked(city="Oslo")], "exact", 0.5),
        ([asked(city="Oslo", unit="C")], "exact", pytest.approx(1 / 3, abs=1e-6)),
        ([asked()], "subset", 1.0),
        ([asked()], "exact", 0.0),
        ([ExpectedCall("get_time", {"city": "Oslo"})], "subset", 0.0),
        ([ExpectedCall("get_time", {"city": "Oslo"}), asked(city="Oslo")], "subset", 0.5),
        ([ExpectedCall("get_time"), asked(city="Oslo")], "subset", 1.0),
    ],
)
def test_the_share_of_arguments(expected: list[ExpectedCall], how: Any, value: float, trial: MakeTrial) -> None:
    metric = ArgumentMatch(tools=tuple(expected), arguments=how)

    assert value == metric.score(trial(calls=[OSLO, ROME])).value


def test_each_expected_call_has_a_call_of_its_own_so_that_the_shares_add_up_to_the_most(trial: MakeTrial) -> None:
    calls = [ToolCall("f", {"a": 1, "b": 1, "c": 1}), ToolCall("f", {"a": 1, "b": 1, "c": 2})]
    greedy, modest = ExpectedCall("f", {"a": 1, "b": 1, "c": 1}), ExpectedCall("f", {"a": 1, "b": 1, "c": 1, "d": 1})

    both = ArgumentMatch(tools=(modest, greedy)).score(trial(calls=calls))
    one = ArgumentMatch(tools=(modest, greedy)).score(trial(calls=calls[:1]))

    assert round((2 / 4 + 1) / 2, 6) == both.value
    assert (round(1 / 2, 6), "no call for f(a=1, b=1, c=1, d=1)") == (one.value, one.reason)


def test_the_reason_says_what_was_called_in_its_place(trial: MakeTrial) -> None:
    expected = {"name": "get_weather", "arguments": {"city": "Oslo", "days": 5}}

    score = ArgumentMatch().score(trial(calls=[OSLO], facts={"tools": [expected]}))

    reason = "get_weather(city='Oslo', days=5) got get_weather(city='Oslo', days=3)"
    assert (0.5, reason) == (score.value, score.reason)


@pytest.mark.parametrize("tools", [None, [], ["get_weather"], 5])
def test_without_arguments_to_look_for_the_calls_are_unscored(tools: Any, trial: MakeTrial) -> None:
    score = ArgumentMatch().score(trial(calls=[OSLO], facts={"tools": tools}))

    assert score.value is None
    assert "give it a list of {name, arguments}, or the metric `tools`" in score.reason


def test_calls_that_are_only_counted_leave_it_open(trial: MakeTrial) -> None:
    assert ArgumentMatch(tools=(asked(city="Oslo"),)).score(trial(calls=[OSLO], unlisted=1)).value is None
