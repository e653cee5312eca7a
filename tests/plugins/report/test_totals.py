"""What a run took, on one line."""

from __future__ import annotations

from typing import Any

import pytest

from keval.records.manifest import ServerStartsEntry
from keval.records.models import dollars
from keval_analysis.findings.summary import ArmTrials, Cost, GivenUp, JudgingTotal, Summary, UsageTotal
from keval_report.totals import start_notice, total_lines


def arm(condition: str, **told: Any) -> ArmTrials:
    unknown: dict[str, Any] = dict.fromkeys(("tool_calls", "model_calls", "duration", "compliance"))
    counts: dict[str, Any] = {"trials": 204, "failed": 0, "retried": 0, "failures": {}}
    totals: dict[str, Any] = {"usage": UsageTotal(), "given_up": GivenUp()}
    return ArmTrials("gadk", condition, **{**unknown, **counts, **totals, **told})


def summary(*trials: ArmTrials, **told: Any) -> Summary:
    planned = sum(entry.trials for entry in trials)
    return Summary("r", "weather", "baseline", "omit", planned, trials=trials, **told)


def total_line(found: Summary) -> str:
    return "\n".join(line.plain for line in total_lines(found, 200))


def test_everything_counts_attempts_that_were_discarded_and_judgements_too() -> None:
    given_up = GivenUp(10, UsageTotal(10_000, 4_000))
    judging = JudgingTotal("gadk", "b", "j", 1, 0, 0, 0, 0, 4, UsageTotal(5_000, 1_000), Cost(0.0))
    found = summary(
        arm("a", model_calls=600, usage=UsageTotal(200_000, 40_000), cost=Cost(0.0)),
        arm("b", model_calls=600, tool_calls=316, usage=UsageTotal(100_000, 50_000), given_up=given_up, cost=Cost(0.0)),
        judging=(judging,),
        simulated=("simulated/weather",),
        elapsed=13.2,
    )

    assert (
        "408 trials, none failed   13 s   1,214 model calls   316 tool calls   0.41 M tokens   $0 (simulated)"
        == total_line(found)
    )


@pytest.mark.parametrize(
    ("cost", "told", "line"),
    [
        (Cost(1.5), {}, "$1.50"),
        (Cost(1.5), {"simulated": ("simulated/judge",)}, "$1.50"),
        (Cost(0.0), {}, "$0"),
        (Cost(None, 204), {"unpriced": ("openai/foo",)}, "price unknown for openai/foo"),
        (Cost(1.5, 4), {"unpriced": ("openai/foo", "x/y")}, "$1.50; price unknown for openai/foo, x/y"),
        (Cost(1.5, 1), {}, "$1.50; cost of 1 trial or judgement unknown"),
        (Cost(), {}, "no model was asked"),
    ],
)
def test_what_is_unknown_is_said_and_is_not_0(cost: Cost, told: dict[str, Any], line: str) -> None:
    assert f"204 trials, 2 failed   {line}" == total_line(summary(arm("a", failed=2, cost=cost), **told))


@pytest.mark.parametrize(
    ("usd", "shown"),
    [
        (0, "$0"),
        (0.00042, "$0.00042"),
        (0.0123, "$0.012"),
        (0.4, "$0.40"),
        (12.3, "$12.30"),
        (150.75, "$150.75"),
        (12345.6, "$12,346"),
    ],
)
def test_dollars_have_as_many_digits_as_say_something(usd: float, shown: str) -> None:
    assert shown == dollars(usd)


def test_what_starts_will_take_is_by_those_that_were_measured() -> None:
    begun = [
        ServerStartsEntry("a", "notes", planned=40, processes=2, seconds=3.0),
        ServerStartsEntry("b", "shared", planned=0, processes=1, seconds=9.0),
    ]

    told = start_notice(begun, 0.5)

    assert told is not None
    assert told.startswith("20 server processes are to be started, one for each trial (notes), which take about 1.5 s")
