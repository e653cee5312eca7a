"""Verdicts: a gate and a summary in, held, failed or undecided out, for each arm."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from keval import Scale, Summary
from keval_analysis.findings.effects import Arm, Effect
from keval_analysis.findings.summary import (
    ArmScore,
    ArmTrials,
    Compliance,
    Cost,
    GateResult,
    GivenUp,
    JudgingTotal,
    ScorerScale,
    UsageTotal,
)
from keval_analysis.gate_language import Names, parse
from keval_analysis.gates import decide, decide_regressions
from keval_analysis.stats.effects import Drop

ARMS = [(agent, condition) for agent in ("a", "b") for condition in ("base", "docs")]
SCORERS = [("m", None), ("r", "first"), ("r", "second")]


def trials(agent: str, condition: str, **changed: Any) -> ArmTrials:
    whole: dict[str, Any] = {
        "trials": 20,
        "failed": 0,
        "retried": 0,
        "failures": {},
        "tool_calls": 30,
        "model_calls": 40,
        "usage": UsageTotal(1500, 500),
        "given_up": GivenUp(),
        "duration": 2.0,
        "compliance": None,
        "duration_median": 1.5,
        "duration_p95": 9.0,
        "cost": Cost(1.0),
        **changed,
    }
    return ArmTrials(agent, condition, **whole)


def score(agent: str, condition: str, metric: str, judge: str | None, **changed: Any) -> ArmScore:
    whole: dict[str, Any] = {"n": 10, "mean": 0.8, "ci_low": 0.7, "ci_high": 0.9, **changed}
    return ArmScore(agent, condition, metric, judge, **CELL, **whole)


CELL: dict[str, Any] = {
    "stderr": 0.04,
    "band": None,
    "scored": 10,
    "neutral": 3,
    "unscored": 1,
    "failed": 0,
    "failures": {},
    "missing": 0,
}


def effect(agent: str, metric: str, judge: str | None, **changed: Any) -> Effect:
    found: dict[str, Any] = {"n": 10, "difference": 0.3, "stderr": 0.05, "ci_low": 0.2, "ci_high": 0.4, **changed}
    return Effect(metric, judge, agent, "docs", Arm(agent, "base"), **found)


SUMMARY = Summary(
    run="r",
    evaluation="e",
    baseline="base",
    neutral="omit",
    planned=80,
    scorers=tuple(ScorerScale(metric, judge, Scale()) for metric, judge in SCORERS),
    trials=tuple(trials(*arm) for arm in ARMS),
    arms=tuple(score(*arm, *scorer) for arm in ARMS for scorer in SCORERS),
    effects=tuple(effect(agent, *scorer) for agent in ("a", "b") for scorer in SCORERS),
    expenses=(effect("a", "seconds", None, difference=0.5, ci_low=0.1, ci_high=0.9),),
)
NAMES = Names(("a", "b"), ("base", "docs"), "base", {scorer: Scale() for scorer in SCORERS})


def decided(written: str, summary: Summary = SUMMARY) -> list[GateResult]:
    return decide([parse(written, NAMES)], summary)


def verdict(written: str, summary: Summary = SUMMARY) -> tuple[str, str]:
    (result,) = decided(written, summary)
    return result.verdict, result.reason


@pytest.mark.parametrize(
    ("written", "about"),
    [
        ("m >= 0.5", ["a:docs/m >= 0.5", "b:docs/m >= 0.5"]),
        ("b:m >= 0.5", ["b:m >= 0.5"]),
        ("base/m>=0.5", ["a:base/m >= 0.5", "b:base/m >= 0.5"]),
        ("a:r >= 0.5", ["a:docs/r@first >= 0.5", "a:docs/r@second >= 0.5"]),
        ("low(r@first) >= +0.1", ["low(a:docs/r@first) >= +0.1", "low(b:docs/r@first) >= +0.1"]),
        ("failures <= 5%", [f"{agent}:{condition}/failures <= 5%" for agent, condition in ARMS]),
        ("total(usd) <= 5", ["total(usd) <= 5"]),
        ("total(docs/usd) <= 5", ["total(a:docs/usd) <= 5", "total(b:docs/usd) <= 5"]),
    ],
)
def test_each_arm_that_a_gate_is_about_has_a_verdict(written: str, about: list[str]) -> None:
    found = decided(written)

    assert about == [result.gate for result in found]
    assert {written} == {result.written for result in found}


def test_the_only_condition_is_the_one_that_is_decided() -> None:
    alone = attrs.evolve(SUMMARY, trials=(trials("a", "base"),))

    assert [("a", "base")] == [(result.agent, result.condition) for result in decided("m >= 0.5", alone)]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("a:m >= 0.8", "held"),
        ("a:m > 0.8", "failed"),
        ("a:m <= 0.8", "held"),
        ("a:m < 0.8", "failed"),
        ("a:m >= 0.81", "failed"),
        ("low(a:m) >= 0.7", "held"),
        ("low(a:m) >= 0.75", "undecided"),
        ("low(a:m) >= 0.95", "failed"),
        ("high(a:m) <= 0.9", "held"),
        ("high(a:m) <= 0.85", "undecided"),
        ("high(a:m) <= 0.6", "failed"),
        ("high(a:m) >= 0.85", "held"),
        ("a:m >= +0.3", "held"),
        ("a:m >= +0.31", "failed"),
        ("low(a:m) >= +0.2", "held"),
        ("low(a:m) >= +0.3", "undecided"),
        ("low(a:m) >= +0.5", "failed"),
        ("high(a:m) <= -0.1", "failed"),
        ("a:docs/seconds <= +1", "held"),
        ("high(a:docs/seconds) <= +0.5", "undecided"),
        ("a:docs/seconds <= 1.9", "failed"),
        ("median(a:docs/seconds) <= 1.9", "held"),
        ("p95(a:docs/seconds) <= 8", "failed"),
        ("a:docs/tokens <= 100", "held"),
        ("a:docs/tokens < 100", "failed"),
        ("a:docs/tool_calls <= 1.5", "held"),
        ("a:docs/usd <= 0.05", "held"),
        ("total(usd) <= 4", "held"),
        ("total(tokens) < 8000", "failed"),
        ("total(tool_calls) <= 120", "held"),
    ],
)
def test_a_gate_is_decided_by_what_it_asks_for(written: str, expected: str) -> None:
    assert expected == verdict(written)[0]


@pytest.mark.parametrize("mean", [0.1 + 0.7, 0.8])
def test_a_hair_below_the_threshold_is_on_it(mean: float) -> None:
    summary = attrs.evolve(SUMMARY, arms=(score("a", "docs", "m", None, mean=mean),))

    assert 0.1 + 0.7 < 0.8
    assert ["held", "failed"] == [verdict(f"a:m {op} 0.8", summary)[0] for op in (">=", ">")]


def test_too_few_samples_decide_nothing() -> None:
    one = attrs.evolve(
        SUMMARY,
        arms=(score("a", "docs", "m", None, n=1, ci_low=None, ci_high=None),),
        effects=(effect("a", "m", None, n=1, ci_low=None, ci_high=None),),
    )

    assert ("undecided", "too few samples: n = 1, 3 neutral, 1 unscored") == verdict("a:m >= 0.1", one)
    assert ("undecided", "too few samples: n = 1") == verdict("a:m >= +0.1", one)
    assert ("undecided", "the run has no effect of this arm against the baseline") == verdict("b:m >= +0.1", one)


def test_a_mean_without_an_interval_decides_and_its_ends_do_not() -> None:
    summary = attrs.evolve(SUMMARY, arms=(score("a", "docs", "m", None, ci_low=None, ci_high=None),))

    assert ("held", "") == verdict("a:m >= 0.8", summary)
    assert ("undecided", "there is no interval") == verdict("low(a:m) >= 0.8", summary)
    alike = attrs.evolve(summary, arms=(attrs.evolve(summary.arms[0], stderr=0.0),))
    told = "there is no interval, as all samples have one value on a scale without an end"
    assert ("undecided", told) == verdict("low(a:m) >= 0.8", alike)


def test_what_is_unknown_is_never_cheap() -> None:
    unknown = trials(
        "a",
        "docs",
        usage=UsageTotal(),
        cost=Cost(),
        tool_calls=None,
        duration=None,
        duration_p95=None,
    )
    partly = trials("b", "docs", usage=UsageTotal(900, 100, unknown=2), cost=Cost(3.0, unknown=2))
    summary = attrs.evolve(SUMMARY, trials=(trials("a", "base"), trials("b", "base"), unknown, partly), expenses=())

    whole = {each: verdict(f"a:docs/{each} <= 9")[0] for each in ("usd", "tool_calls", "seconds")}
    lacking = {each: verdict(f"a:docs/{each} <= 9", summary) for each in ("usd", "tokens", "tool_calls", "seconds")}

    assert {"held"} == {*whole.values()}
    assert {
        "usd": ("undecided", "the price or tokens of 20 trials or judgements are unknown"),
        "tokens": ("undecided", "the tokens of 20 trials or judgements are unknown"),
        "tool_calls": ("undecided", "the tool calls of 20 trials or judgements are unknown"),
        "seconds": ("undecided", "no duration is known"),
    } == lacking
    assert "undecided" == verdict("b:docs/usd <= 9", summary)[0]
    # What is known of a total may decide already.
    assert "failed" == verdict("total(b:docs/usd) <= 2.5", summary)[0]
    assert "undecided" == verdict("total(b:docs/usd) <= 9", summary)[0]
    assert "held" == verdict("total(b:docs/usd) >= 2.5", summary)[0]
    assert "undecided" == verdict("total(b:docs/usd) >= 9", summary)[0]


def test_a_total_has_what_was_given_up_and_what_judges_used() -> None:
    judging = [JudgingTotal("a", "docs", "first", 20, 0, 0, 0, 0, 20, UsageTotal(70, 30), Cost(0.25))]
    arm = trials("a", "docs", given_up=GivenUp(3, UsageTotal(600, 400), Cost(0.5)))
    summary = attrs.evolve(SUMMARY, trials=(arm,), judging=tuple(judging))

    found = [decided(each, summary)[0].value for each in ("total(usd) <= 9", "total(tokens) <= 9", "a:tokens <= 9")]

    assert [1.25, 3100, 100] == found
    # A mean has neither.
    assert 0.025 == decided("a:usd <= 9", summary)[0].value


def test_shares_are_told_with_their_counts() -> None:
    arm = trials("a", "docs", failed=1, compliance=Compliance(answered=19, complied_first=17, complied=19))
    summary = attrs.evolve(SUMMARY, trials=(arm, trials("b", "docs", trials=0)))

    assert ("held", "1 of 20 trials") == verdict("a:failures <= 5%", summary)
    assert ("failed", "1 of 20 trials") == verdict("a:failures < 5%", summary)
    assert ("failed", "17 of 19 trials") == verdict("a:compliance >= 0.9", summary)
    assert ("undecided", "the condition 'docs' requires no use of tools") == verdict("b:compliance >= 0.9", summary)
    assert ("undecided", "no trial was run") == verdict("b:failures <= 5%", summary)
    assert ("undecided", "no trial was answered") == verdict("b:usd <= 5", summary)


@pytest.mark.parametrize(
    ("ends", "p", "most", "expected", "reason"),
    [
        ((0.1, 0.3), 0.01, 0.0, "failed", ""),
        ((0.1, 0.3), 0.2, 0.0, "undecided", "p 0.20 after adjustment for 6 comparisons; a drop of 0.3 is not excluded"),
        ((-0.1, 0.3), 0.4, 0.0, "undecided", "a drop of 0.3 is not excluded"),
        ((-0.3, -0.1), 0.99, 0.0, "held", ""),
        ((-0.3, 0.0), 0.9, 0.0, "held", ""),
        ((0.1, 0.3), 0.9, 0.3, "held", ""),
        ((0.1, 0.3), 0.9, 0.2, "undecided", "a drop of 0.3 is not excluded"),
        ((None, None), None, 0.0, "undecided", "too few samples that both runs have: n = 10"),
    ],
)
def test_a_regression_fails_if_the_drop_is_surely_more_than_allowed(
    ends: tuple[float, float] | tuple[None, None],
    p: float | None,
    most: float,
    expected: str,
    reason: str,
) -> None:
    against = attrs.evolve(effect("a", "m", None, family_size=6), kind="run", against=Arm("a", "docs", "x"))

    higher, lower = (
        decide_regressions([Drop(against, ends[0], ends[1], p)], {("m", None): Scale(better=better)}, most)[0]
        for better in ("higher", "lower")
    )

    for result in (higher, lower):
        assert (expected, reason, "x", f"a:docs/m no more than {most:g} worse than in x", 0.9) == (
            result.verdict,
            result.reason,
            result.against,
            result.gate,
            result.level,
        )
    assert ends == (lower.ci_low, lower.ci_high)
    assert [None if end is None else -end for end in ends] == [higher.ci_high, higher.ci_low]


def test_a_regression_of_an_unfinished_run_is_undecided() -> None:
    interim = attrs.evolve(effect("a", "m", None), kind="run", verdict="interim")

    (result,) = decide_regressions([Drop(interim, 0.1, 0.3, 0.01)], {("m", None): Scale()}, 0.0)

    assert ("undecided", "a run is unfinished") == (result.verdict, result.reason)


def test_what_neither_run_has_is_no_gate() -> None:
    lost = attrs.evolve(effect("a", "m", None, n=0, ci_low=None, ci_high=None), kind="run")

    drops = [Drop(each, None, None, None) for each in (lost, attrs.evolve(lost, dropped=4))]
    found = decide_regressions(drops, {("m", None): Scale()}, 0.0)

    assert [("undecided", "too few samples that both runs have: n = 0")] == [
        (each.verdict, each.reason) for each in found
    ]
