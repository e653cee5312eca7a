"""The report of a run, whole, as it is printed at several widths."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import attrs
import pytest
from rich.console import Console

from keval.effects import Arm, Effect, Interaction, PerProtocol
from keval.manifest import JudgeEntry
from keval.prices import Cost
from keval.records import Usage
from keval.report.overview import print_report
from keval.scores import Scale
from keval.summary import (
    ArmScore,
    ArmTrials,
    GateResult,
    GivenUp,
    JudgingTotal,
    ScorerScale,
    Summary,
    UsageTotal,
)
from keval.variation import VarianceComponents

SCALES = {
    ("acme/accuracy", None): Scale(bands={"poor": 0.0, "good": 0.7}),
    ("acme/answer_time", None): Scale(high=math.inf, better="lower", unit="s"),
    ("acme/style", None): Scale(),
    ("other/style", None): Scale(),
    ("tone", "strict"): Scale(1, 5),
    ("tone", "kind"): Scale(1, 5),
    ("acme/effort", None): Scale(),
    ("acme/calls", None): Scale(),
}
SIDES = {"ada": "baseline", "bob": "baseline"}


def arm(agent: str, condition: str, scorer: tuple[str, str | None], mean: float | None, **more: Any) -> ArmScore:
    given: dict[str, Any] = {"n": 0 if mean is None else 12, "stderr": 0.1, "band": None, "scored": 24, "neutral": 0}
    given |= {"unscored": 0, "failed": 0, "failures": {}, "missing": 0, **more}
    return ArmScore(agent=agent, condition=condition, metric=scorer[0], judge=scorer[1], mean=mean, **given)


def trials(agent: str, condition: str, **more: Any) -> ArmTrials:
    given: dict[str, Any] = {"trials": 24, "failed": 0, "retried": 0, "failures": {}, "tool_calls": 24}
    given |= {"model_calls": 48, "usage": UsageTotal(900, 100), "given_up": GivenUp(), "duration": 1.0}
    return ArmTrials(agent=agent, condition=condition, **{**given, "compliance": None, **more})


def effect(scorer: tuple[str, str | None], agent: str, before: float, after: float, half: float, **more: Any) -> Effect:
    difference = after - before
    given: dict[str, Any] = {"mean": after, "against_mean": before, "condition": "docs", "n": 12, "stderr": half / 2}
    given |= {"ci_low": difference - half, "ci_high": difference + half, "against": Arm(agent, "baseline", "r")}
    return Effect(*scorer, agent=agent, difference=difference, run="r", **{**given, **more})


def summary(**changes: Any) -> Summary:
    arms = [(agent, condition) for agent in ("ada", "bob") for condition in ("baseline", "docs")]
    effort = {"ada": 0.2, "bob": 0.9}
    scores = [
        arm(*of, scorer, effort[of[0]] if scorer[0] == "acme/effort" else 0.5)
        for of in arms
        for scorer in SCALES
        if scorer[0] != "acme/calls"
    ]
    scores = [attrs.evolve(e, stderr=0.0) if e.metric == "acme/effort" else e for e in scores]
    scores[1] = attrs.evolve(scores[1], unscored=3, failed=2, failures={"ValueError": 2})
    scores += [arm(*of, ("acme/calls", None), None, neutral=24, scored=0) for of in arms]
    found = Summary(
        run="r",
        evaluation="acme",
        baseline="baseline",
        neutral="omit",
        planned=96,
        elapsed=83.4,
        scorers=tuple(ScorerScale(*scorer, scale) for scorer, scale in SCALES.items()),
        trials=tuple(trials(*of) for of in arms),
        arms=tuple(scores),
        effects=(
            effect(("acme/accuracy", None), "ada", 0.45, 0.97, 0.08, verdict="better"),
            effect(("acme/accuracy", None), "bob", 0.6, 0.68, 0.12, verdict="unclear", needed=31, mde=0.2, dropped=2),
            effect(("acme/answer_time", None), "ada", 1.25, 3.5, 0.5, verdict="worse", bound_low=1.0, bound_high=4.0),
            effect(("acme/answer_time", None), "bob", 1.0, 0.5, 0.25, verdict="better"),
            effect(("acme/style", None), "ada", 0.5, 0.51, 0.02, verdict="same"),
            effect(("acme/style", None), "bob", 0.5, 0.51, 0.02, verdict="same"),
            effect(("other/style", None), "ada", 0.5, 0.53, 0.09, verdict="unclear", mde=0.117, needed=900),
            effect(("other/style", None), "bob", 0.5, 0.6, 0.0, ci_low=None, ci_high=None),
            effect(("tone", "strict"), "ada", 3.0, 4.0, 0.4, verdict="better"),
            effect(("tone", "kind"), "ada", 3.0, 3.1, 0.1, verdict="same"),
            effect(("acme/effort", None), "ada", 0.2, 0.2, 0.0, verdict="same"),
            effect(("acme/effort", None), "bob", 0.9, 0.9, 0.0, verdict="same"),
            Effect("acme/calls", None, "ada", "docs", Arm("ada", "baseline"), 0, None, None),
        ),
    )
    return attrs.evolve(found, **changes)


def lines(found: Summary, width: int) -> list[str]:
    console = Console(width=width, file=io.StringIO())
    print_report(found, console, Path("results/acme/r"), questions=12, under_way=False)
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue().splitlines()


def with_agents() -> Summary:
    """Two agents under one condition."""
    found = summary()
    pairs = [
        effect(("acme/accuracy", None), "bob", 0.8, 0.6, 0.15, kind="agent", condition="baseline", verdict="worse"),
        effect(("acme/effort", None), "bob", 0.2, 0.9, 0.0, kind="agent", condition="baseline", verdict="better"),
    ]
    against = [attrs.evolve(pair, against=Arm("ada", "baseline", "r")) for pair in pairs]
    return attrs.evolve(
        found,
        planned=48,
        trials=tuple(entry for entry in found.trials if entry.condition == "baseline"),
        arms=tuple(entry for entry in found.arms if entry.condition == "baseline"),
        effects=tuple(against),
    )


def with_all_else() -> Summary:
    """Everything that follows the effects."""
    protocol = PerProtocol(9, 0.6, 0.5, 0.7)
    first = effect(("acme/accuracy", None), "ada", 0.45, 0.97, 0.08, verdict="better", per_protocol=protocol)
    seconds = effect(("seconds", None), "ada", 1.0, 2.4, 0.2)
    tokens = effect(("tokens", None), "ada", 100.0, 912.0, 40.0)
    sure = Interaction(
        *("acme/accuracy", None, "docs", "baseline", "bob", "ada", 12),
        *(-0.44, 0.05, -0.55, -0.33, "t", 0.001, 0.004),
    )
    unsure = attrs.evolve(sure, metric="acme/style", p_adjusted=0.2)
    cost = Cost(0.0421, 3)
    return summary(
        simulated=("simulated/any",),
        judges={"strict": JudgeEntry("reader", model="simulated/any", simulated=False)},
        effects=(first,),
        expenses=(seconds, tokens),
        interactions=(sure, unsure),
        variance=(
            VarianceComponents("acme/accuracy", None, 0.1, 0.01, None, "More questions would narrow the intervals."),
            VarianceComponents("acme/style", None, None, None, None, ""),
        ),
        trials=(
            trials("ada", "baseline", cost=cost),
            trials("ada", "docs", failed=2, retried=1, failures={"agent: timeout": 2}),
            trials("bob", "baseline", model_calls=None, tool_calls=None),
            trials("bob", "docs", trials=20),
        ),
        judging=(JudgingTotal("ada", "docs", "strict", 24, 24, 6, 0, 0, 24, UsageTotal(90_000, 5_000)),),
        stopped="budget used: 92 of 92 trials",
        gates=(
            GateResult("accuracy >= 0.8", "held", 0.97, 0.93, 1.0, "mean", ""),
            GateResult("docs/style >= +0.05", "failed", 0.01, -0.01, 0.03, "mean", ""),
            GateResult("usd <= 2", "undecided", None, None, None, "total", "the price of 3 trials is unknown"),
        ),
    )


WIDTHS = {
    60: """
""",
}
