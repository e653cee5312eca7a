"""The average over all metrics: what counts, with which weight, and who wins by it."""

from __future__ import annotations

import math
from collections.abc import Mapping

import attrs
import pytest

from keval import Scale, Summary
from keval.plugin import Arm, ArmScore, ArmTrials, Effect, ScorerScale
from keval.records.scores import Scorer
from keval.records.summary import GivenUp, UsageTotal
from keval.report.averages import Winner, average_lines, averages
from tests.conftest import Project

SCALES = {
    ("share", None): Scale(0, 1),
    ("errors", None): Scale(0, 10, better="lower"),
    ("tone", "one"): Scale(1, 5),
    ("tone", "two"): Scale(1, 5),
    ("seconds", None): Scale(0, math.inf, better="lower"),
}
MEANS = {
    "baseline": {("share", None): 0.5, ("errors", None): 5.0, ("tone", "one"): 3.0, ("tone", "two"): 3.0},
    "docs": {("share", None): 0.7, ("errors", None): 2.0, ("tone", "one"): 5.0, ("tone", "two"): 4.0},
}

T = 2.306
"""How many standard errors a 95 % interval reaches with 8 degrees of freedom."""


def span(scorer: Scorer) -> float:
    return SCALES[scorer].high - SCALES[scorer].low


def summary(means: Mapping[str, Mapping[Scorer, float]], stderr: float, paired: float | None) -> Summary:
    arms = [
        ArmScore(
            "a",
            condition,
            *scorer,
            9,
            value,
            stderr * span(scorer),
            None,
            9,
            0,
            0,
            0,
            {},
            0,
            ci_low=value - T * stderr * span(scorer),
            ci_high=value + T * stderr * span(scorer),
        )
        for condition, found in means.items()
        for scorer, value in found.items()
    ]
    effects = [
        Effect(
            *scorer,
            "a",
            "docs",
            Arm("a", "baseline"),
            9,
            0.0,
            paired * span(scorer),
            ci_low=-T * paired * span(scorer),
            ci_high=T * paired * span(scorer),
        )
        for scorer in means["docs"]
        if paired is not None
    ]
    trials = [
        ArmTrials("a", condition, 9, 0, 0, {}, None, None, UsageTotal(), GivenUp(), None, None) for condition in means
    ]
    scorers = [ScorerScale(*scorer, scale) for scorer, scale in SCALES.items()]
    return Summary(
        run="r",
        evaluation="e",
        baseline="baseline",
        neutral="omit",
        planned=18,
        scorers=tuple(scorers),
        trials=tuple(trials),
        arms=tuple(arms),
        effects=tuple(effects),
    )


def test_metrics_count_as_shares_of_their_scale_and_a_rubric_once() -> None:
    found = averages(summary(MEANS, 0.01, None))

    shares = {arm.condition: round(arm.average, 9) for arm in found.arms}
    assert {"baseline": 0.5, "docs": round((0.7 + 0.8 + (1.0 + 0.75) / 2) / 3, 9)} == shares
    assert (("share", "errors", "tone"), {"seconds": "its scale has no end"}) == (found.metrics, found.left_out)


@pytest.mark.parametrize(
    ("stderr", "paired", "winner"),
    [
        (0.05, None, "docs"),  # a lead of 0.29 and an error of 2.31 * 0.05 * sqrt(2)
        (0.12, None, None),
        (0.12, 0.05, "docs"),  # pairing removes what the arms share
        (0.05, 0.16, None),
    ],
)
def test_nobody_wins_by_less_than_the_error(stderr: float, paired: float | None, winner: str | None) -> None:
    found = averages(summary(MEANS, stderr, paired))

    assert (Winner("condition", "a", winner),) == found.winners


@pytest.mark.parametrize(
    ("docs", "told"),
    [
        ([0.50] * 6, "; no winner: the difference is within the error"),  # all differ alike, and the interval is wide
        ([0.45, 0.55, 0.52, 0.48, 0.43, 0.57], "; docs wins"),  # and the length of answers, which is the same
    ],
    ids=["alike", "scattered"],
)
def test_the_error_is_that_of_the_interval_but_where_nothing_differs(
    project: Project, docs: list[float], told: str
) -> None:
    answers = [("baseline", [0.25] * 6), ("docs", docs)]
    project.write(
        q_jsonl="".join(f'{{"id": "{name}", "question": "?"}}\n' for name in "abcdef"),
        one_jsonl="".join(
            f'{{"id": "{name}", "condition": "{condition}", "response": "{answer:.2f}"}}\n'
            for condition, given in answers
            for name, answer in zip("abcdef", given, strict=True)
        ),
        eval_yaml="""
            dataset: {path: q.jsonl}
            agents: {one: {type: recorded, path: one.jsonl}}
            conditions: {baseline: {}, docs: {}}
            metrics: [number/rating, double/length]
        """,
    )

    outcome = project.keval("run", "eval.yaml")

    assert told in outcome.stdout


def test_a_metric_that_an_arm_has_no_mean_of_is_left_out_and_said() -> None:
    lacking = {**MEANS, "docs": {scorer: mean for scorer, mean in MEANS["docs"].items() if scorer[0] != "errors"}}

    heading, line = average_lines(summary(lacking, 0.01, None))

    left_out = {"errors": "an arm has no mean of it", "seconds": "its scale has no end"}
    assert left_out == averages(summary(lacking, 0.01, None)).left_out
    assert "Average over 2 of 4 metrics as shares of their scales, no more than a summary:" == heading
    assert "  a: baseline 0.50, docs 0.79; docs wins" == line


def test_one_metric_has_no_average() -> None:
    found = summary(MEANS, 0.01, None)

    assert [] == average_lines(attrs.evolve(found, scorers=found.scorers[:1]))


def test_one_arm_has_no_average() -> None:
    alone = summary({"baseline": MEANS["baseline"], "docs": {}}, 0.01, None)

    assert [] == average_lines(attrs.evolve(alone, trials=alone.trials[:1]))
