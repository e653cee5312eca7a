from __future__ import annotations

from collections.abc import Callable

import pytest

from keval import ToolCall, Trial
from keval_metrics_basic import NoToolErrors

MakeTrial = Callable[..., Trial]

GOOD = ToolCall("get_weather", result="rain")
BAD = ToolCall("get_weather", error="no such city")


@pytest.mark.parametrize(
    ("calls", "value", "reason"),
    [
        ([GOOD], 1.0, "none of 1 tool calls failed"),
        ([GOOD, BAD], 0.5, "1 of 2 tool calls failed: get_weather; first error: no such city"),
        ([BAD, BAD, ToolCall("get_time", error="")], 0.0,
         "3 of 3 tool calls failed: get_weather (2), get_time; first error: no such city"),
        ([ToolCall("get_time", error=""), GOOD, GOOD], 0.666667,
         "1 of 3 tool calls failed: get_time; first error: no message"),
    ],
)  # fmt: skip
def test_the_value_is_the_share_of_calls_that_did_not_fail(
    calls: list[ToolCall], value: float, reason: str, trial: MakeTrial
) -> None:
    score = NoToolErrors().score(trial(calls=calls))

    assert (value, reason, False) == (score.value, score.reason, score.neutral)


def test_the_details_name_the_errors(trial: MakeTrial) -> None:
    details = NoToolErrors().score(trial(calls=[GOOD, BAD])).details

    assert {"calls": 2, "failed": 1, "errors": [{"tool": "get_weather", "error": "no such city"}]} == details


def test_no_calls_are_neutral(trial: MakeTrial) -> None:
    score = NoToolErrors().score(trial())

    assert (1.0, True, "no tool calls") == (score.value, score.neutral, score.reason)


@pytest.mark.parametrize(("unlisted", "known"), [(2, "2 more are only counted"), (None, "it is not known whether")])
def test_calls_that_are_only_counted_leave_it_unscored(unlisted: int | None, known: str, trial: MakeTrial) -> None:
    score = NoToolErrors().score(trial(calls=[GOOD], unlisted=unlisted))

    assert score.value is None
    assert score.reason.startswith(f"it is not known which tool calls failed: {known}")
