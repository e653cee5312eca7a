from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from keval import ToolCall, Trial
from keval_metrics_basic import ExpectedCall, ToolChoice

MakeTrial = Callable[..., Trial]

CALLS = [
    ToolCall("search", {"query": "coats"}),
    ToolCall("search", {"query": "warm coats"}, error="too many"),
    ToolCall("docs__open_page", {"id": 1}, tool="open_page"),
    ToolCall("buy"),
]


@pytest.mark.parametrize(
    ("options", "value"),
    [
        ({"tools": ("search",)}, 1.0),
        ({"tools": ("buy",)}, 0.0),
        ({"tools": ("buy",), "k": 2}, 0.0),
        ({"tools": ("buy",), "k": 3}, 1.0),
        ({"tools": ("buy", "search")}, 1.0),
        ({"tools": ("buy", "search"), "match": "all"}, 0.0),
        ({"tools": ("buy", "search"), "match": "all", "k": 3}, 1.0),
        ({"tools": ("open_page",), "k": 2}, 1.0),
        ({"tools": ("docs__open_page",), "k": 2}, 1.0),
        ({"tools": (ExpectedCall("search", {"query": "shoes"}),)}, 1.0),
        ({"tools": ("sell",), "k": 9}, 0.0),
        ({"tools": ()}, 0.0),
    ],
)
def test_a_tool_counts_once_in_the_order_of_its_first_call(
    options: dict[str, Any], value: float, trial: MakeTrial
) -> None:
    assert value == ToolChoice(**options).score(trial(calls=CALLS)).value


def test_the_reason_says_where_the_right_tool_came(trial: MakeTrial) -> None:
    score = ToolChoice().score(trial(calls=CALLS, facts={"tools": ["buy"]}))

    reason = "no call of buy among the first 1; called first: search; the first of them came as number 3"
    details = {"expected": ["buy"], "called": ["search", "docs__open_page", "buy"], "rank": 3}
    assert (reason, details) == (score.reason, score.details)


@pytest.mark.parametrize(
    ("tools", "unlisted", "value"), [(["search"], 0, 0.0), ([], 0, 1.0), ([], 1, None), (["search"], None, None)]
)
def test_a_trial_without_calls(tools: list[str], unlisted: int | None, value: float | None, trial: MakeTrial) -> None:
    assert value == ToolChoice().score(trial(facts={"tools": tools}, unlisted=unlisted)).value


def test_without_tools_to_look_for_the_choice_is_unscored(trial: MakeTrial) -> None:
    assert ToolChoice().score(trial(calls=CALLS)).value is None


def test_k_is_at_least_1() -> None:
    with pytest.raises(ValueError, match="'k' must be >= 1"):
        ToolChoice(0)
