"""What a run found, in sentences that hold."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from keval.records.scores import Scale
from keval_analysis.findings.effects import Arm, Effect, Ratio, Verdict
from keval_analysis.findings.summary import ArmScore, ArmTrials, GivenUp, ScorerScale, Summary, UsageTotal
from keval_report.sentences import sentences

SCORERS = tuple(
    ScorerScale(f"acme/{name}", None, Scale()) for name in ("right_answers", "tone", "speed", "care", "wit")
)


def effect(
    metric: str, difference: float | None, verdict: Verdict, agent: str = "one", *, n: int = 30, **more: Any
) -> Effect:
    against = Arm(agent, "none")
    found = Effect(f"acme/{metric}", None, agent, "docs", against, n, difference, 0.05, verdict=verdict)
    return attrs.evolve(found, **more)


def expense(name: str, difference: float, low: float, high: float) -> Effect:
    verdict: Verdict = "worse" if low > 0 else "better" if high < 0 else "unclear"
    against = Arm("one", "none")
    return Effect(name, None, "one", "docs", against, 30, difference, None, ci_low=low, ci_high=high, verdict=verdict)


def trials(agent: str, condition: str, failed: int = 0) -> ArmTrials:
    return ArmTrials(agent, condition, 10, failed, 0, {}, None, None, UsageTotal(), GivenUp(), None, None)


def summary(**parts: Any) -> Summary:
    return Summary(run="r", evaluation="e", baseline="none", neutral="omit", scorers=SCORERS, **parts)


def told(
    *effects: Effect, expenses: tuple[Effect, ...] = (), agents: tuple[str, ...] = ("one",), failed: int = 0
) -> list[str]:
    arms = tuple(trials(agent, condition, failed) for agent in agents for condition in ("none", "docs"))
    return sentences(summary(trials=arms, effects=effects, expenses=expenses, planned=20 * len(agents)))


def test_gains_come_first_the_largest_of_them_first() -> None:
    said = told(effect("tone", 0.1, "better"), effect("right_answers", 0.26, "better"))

    assert ["docs improves right answers by +0.26; tone by +0.10."] == said


def test_agents_are_named_where_there_are_several() -> None:
    said = told(effect("tone", 0.1, "better"), effect("tone", 0.2, "better", "two"), agents=("one", "two"))

    assert ["docs improves tone by +0.10 (one), +0.20 (two)."] == said


def test_no_loss_is_left_out_and_each_says_on_how_many_questions() -> None:
    names = [scale.metric.removeprefix("acme/") for scale in SCORERS]

    said = told(*(effect(name, -0.1, "worse", n=6) for name in names))

    assert [
        f"{name.capitalize().replace('_', ' ')} got worse with docs by 0.10 (6 questions)." for name in names
    ] == said


def test_more_than_three_gains_are_counted() -> None:
    said = told(*(effect(scale.metric.removeprefix("acme/"), 0.1, "better") for scale in SCORERS))

    assert ["docs improves right answers by +0.10; tone by +0.10; speed by +0.10; 2 more metrics."] == said


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (
            effect("tone", 0.1, "unclear", needed_samples=(20, 44)),
            "This run does not decide whether docs changes tone (31 to 44 questions would show 5 % of the scale).",
        ),
        (
            effect("tone", 0.1, "unclear", needed_samples=(2, 30)),
            "This run does not decide whether docs changes tone.",
        ),
        (
            effect("tone", 0.04, "unclear", mde=0.2, needed_samples=(400, 900)),
            "This run does not decide whether docs changes tone (400 to 900 questions would show 5 % of the scale).",
        ),
        (
            effect("tone", 0.01, "same"),
            "With docs against none: no difference as large as 5 % of the scale in tone.",
        ),
        (effect("tone", 0.0, "same", stderr=0.0), "With docs against none, tone did not change (30 questions)."),
        (effect("tone", 0.0, "unclear", stderr=0.0), "With docs against none, tone did not change (30 questions)."),
        (effect("tone", 0.0, "unknown", n=1, stderr=None), "With docs against none, tone did not change (1 question)."),
        (
            effect("tone", 0.4, "unclear", stderr=0.0),
            "This run does not decide whether docs changes tone.",
        ),
        (
            effect("tone", 0.4, "unknown", n=1),
            "With docs against none: tone by +0.40, on 1 question; too few questions for an interval.",
        ),
        (
            effect("tone", 0.4, "unknown", n=12, stderr=0.0),
            "With docs against none: tone by +0.40; too few questions for an interval.",
        ),
        (
            effect("tone", None, "unknown", n=0),
            "With docs against none: no comparison is possible, because no question has a score in both arms.",
        ),
        (
            effect("tone", -0.4, "worse", "two", kind="agent", against=Arm("one", "docs")),
            "two is worse in tone (-0.40) than one (docs).",
        ),
        (
            effect("tone", 0.4, "better", "two", kind="agent", against=Arm("one", "docs")),
            "two is better in tone (+0.40) than one (docs).",
        ),
        (
            effect("tone", -0.4, "unclear", "two", kind="agent", against=Arm("one", "docs"), stderr=0.0),
            "No clear difference between two and one (docs).",
        ),
        (
            effect("tone", 0.1, "unclear", "two", kind="agent", against=Arm("one", "docs")),
            "No clear difference between two and one (docs).",
        ),
    ],
    ids=[
        "open",
        "many",
        "small",
        "same",
        "flat-same",
        "flat",
        "flat-one",
        "alike",
        "few",
        "no-interval",
        "none",
        "agent-worse",
        "agent-better",
        "agent-alike",
        "agent-open",
    ],
)
def test_nothing_is_claimed_that_is_not_known(found: Effect, sentence: str) -> None:
    assert [sentence] == told(found)


def test_conditions_under_which_agents_differ_alike_share_a_sentence() -> None:
    worse = [
        effect("tone", -0.4, "worse", "two", kind="agent", against=Arm("one", condition), condition=condition)
        for condition in ("none", "docs")
    ]
    open_one = effect("tone", -0.4, "unclear", "three", kind="agent", against=Arm("one", "docs"))

    assert [
        "two is worse in tone (-0.40) than one (none, docs).",
        "No clear difference between three and one (docs).",
    ] == told(*worse, open_one)


def test_what_it_costs_is_said_where_that_is_sure() -> None:
    ratio = Ratio(1.5, 1.2, 1.9, 0.001, 0.004)
    expenses = (
        attrs.evolve(expense("seconds", 1.4, 1.0, 1.8), ratio=ratio),
        expense("tokens", 900.0, 850.0, 950.0),
        expense("tool_calls", -0.5, -0.9, -0.1),
        attrs.evolve(expense("usd", 0.001, -0.1, 0.1), ratio=attrs.evolve(ratio, p_adjusted=0.06)),
    )

    said = told(effect("tone", 0.1, "better"), expenses=expenses)

    assert [
        "Exploratory: docs costs 1.40 s and 900 tokens more per answer.",
        "Exploratory: docs costs 0.5 tool calls less per answer.",
        "Exploratory: docs takes 1.50 times the seconds [1.20, 1.90] per answer.",
    ] == said[1:]


def test_a_condition_that_costs_and_improves_nothing_is_named() -> None:
    costly = expense("tokens", 900.0, 850.0, 950.0)

    said = told(effect("tone", 0.0, "unclear", condition="docs"), expenses=(costly,))

    assert "Exploratory: docs costs 900 tokens more per answer." == said[0]


def test_lost_trials_are_said() -> None:
    assert "6 of 20 trials failed." == told(effect("tone", 0.1, "better"), failed=3)[-1]


def test_a_run_that_compares_nothing_tells_its_means() -> None:
    arm = ArmScore("one", "none", "acme/tone", None, 12, 0.75, 0.1, None, 12, 0, 0, 0, {}, 0)

    said = sentences(summary(trials=(trials("one", "none"),), arms=(arm,), planned=10))

    assert ["one with none: tone 0.75 (12 questions)."] == said
