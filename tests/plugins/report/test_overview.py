"""The report of a run, whole, as it is printed at several widths."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import attrs
import pytest
from rich.cells import cell_len
from rich.console import Console

from keval.records.end_state import ALL_CHECKS, CHECK_PREFIX
from keval.records.manifest import JudgeEntry
from keval.records.scores import Scale
from keval_analysis.findings.effects import (
    AgentProperty,
    Arm,
    Effect,
    FamilyPower,
    Interaction,
    PartialEffect,
    Ratio,
    VarianceComponents,
)
from keval_analysis.findings.summary import (
    Agreement,
    ArmScore,
    ArmTrials,
    Cost,
    GateResult,
    GivenUp,
    JudgeSpread,
    JudgingTotal,
    ScorerScale,
    Summary,
    UsageTotal,
)
from keval_report.cautions import cautions
from keval_report.claims import Level
from keval_report.contrasts import all_blocks
from keval_report.gates import gate_rows
from keval_report.reviews import judging_lines
from keval_report.sentences import findings
from keval_report.terminal.overview import print_report
from keval_report.words import display_names

LEVELS: tuple[Level, ...] = ("first", "explained")
PRINTED = Path(__file__).with_name("printed")
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


def arm(agent: str, condition: str, scorer: tuple[str, str | None], mean: float | None, **more: Any) -> ArmScore:
    given: dict[str, Any] = {"n": 0 if mean is None else 12, "stderr": 0.1, "band": None, "scored": 24, "neutral": 0}
    given |= {"unscored": 0, "failed": 0, "failures": {}, "missing": 0, **more}
    return ArmScore(agent=agent, condition=condition, metric=scorer[0], judge=scorer[1], mean=mean, **given)


def trials(agent: str, condition: str, **more: Any) -> ArmTrials:
    given: dict[str, Any] = {"trials": 24, "failed": 0, "retried": 0, "failures": {}, "tool_calls": 24}
    given |= {
        "model_calls": 48,
        "usage": UsageTotal(900, 100),
        "given_up": GivenUp(),
        "duration": 1.0,
        "cost": Cost(0.25),
    }
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
            effect(
                ("acme/accuracy", None),
                "bob",
                0.6,
                0.68,
                0.12,
                verdict="unclear",
                needed_samples=(20, 31),
                mde=0.2,
                dropped=2,
            ),
            effect(("acme/answer_time", None), "ada", 1.25, 3.5, 0.5, verdict="worse", bound_low=1.0, bound_high=4.0),
            effect(("acme/answer_time", None), "bob", 1.0, 0.5, 0.25, verdict="better"),
            effect(("acme/style", None), "ada", 0.5, 0.51, 0.02, verdict="same"),
            effect(("acme/style", None), "bob", 0.5, 0.51, 0.02, verdict="same"),
            effect(
                ("other/style", None), "ada", 0.5, 0.53, 0.15, verdict="unclear", mde=0.15, needed_samples=(400, 900)
            ),
            effect(("other/style", None), "bob", 0.5, 0.6, 0.0, ci_low=None, ci_high=None, stderr=None),
            effect(("tone", "strict"), "ada", 3.0, 4.0, 0.4, verdict="better"),
            effect(("tone", "kind"), "ada", 3.0, 3.1, 0.1, verdict="same"),
            Effect("acme/calls", None, "ada", "docs", Arm("ada", "baseline"), 0, None, None),
        ),
        properties=tuple(AgentProperty("acme/effort", None, agent, value) for agent, value in effort.items()),
        family_power=FamilyPower(10, 0.4, 2, 0.7),
    )
    return attrs.evolve(found, **changes)


def lines(found: Summary, width: int, level: Level = "first") -> list[str]:
    console = Console(width=width, file=io.StringIO())
    print_report(found, console, Path("results/acme/r"), questions=12, under_way=False, level=level)
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
    protocol = PartialEffect(9, 0.6, 0.5, 0.7)
    first = effect(("acme/accuracy", None), "ada", 0.45, 0.97, 0.08, verdict="better", per_protocol=protocol)
    seconds = effect(("seconds", None), "ada", 1.0, 2.4, 0.2, verdict="worse", ratio=Ratio(2.4, 2.1, 2.7, 0.001, 0.01))
    tokens = effect(("tokens", None), "ada", 100.0, 912.0, 40.0, verdict="worse")
    sure = Interaction(
        *("acme/accuracy", None, "docs", "baseline", "bob", "ada", 12),
        *(-0.44, 0.05, -0.55, -0.33, 0.001, 0.004, 0.08, 0.52),
    )
    harms = attrs.evolve(
        sure, metric="other/style", difference=0.42, ci_low=0.3, ci_high=0.5, effect=-0.08, against_effect=-0.5
    )
    unsure = attrs.evolve(sure, metric="acme/style", p_adjusted=0.2)
    cost = Cost(0.0421, 3)
    return summary(
        simulated=("simulated/any",),
        judges=dict.fromkeys(("strict", "kind"), JudgeEntry("reader", model="simulated/any", simulated=False)),
        effects=(first,),
        expenses=(seconds, tokens),
        interactions=(sure, unsure, harms),
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


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_effects_are_rows_with_interval_plot_and_verdict_as_far_as_there_is_room(width: int) -> None:
    expected = (PRINTED / f"{width}.txt").read_text(encoding="utf-8")

    assert expected.splitlines() == lines(summary(), width)


def test_what_explains_the_effects_follows_them() -> None:
    expected = (PRINTED / "explained.txt").read_text(encoding="utf-8")

    assert expected.splitlines() == lines(with_all_else(), 100, "explained")


@pytest.mark.slow
def test_all_that_any_report_says_is_in_the_explained_one() -> None:
    found = with_all_else()

    explained = lines(found, 100, "explained")
    told = " ".join(" ".join(explained).split())

    said = [*findings(found), *cautions(found, all_blocks(found)), *(row.gate for row in gate_rows(found.gates))]
    said += [f"{heading}: {text}" for block in all_blocks(found) for heading, text in block.remarks]
    said += [claim.name for block in all_blocks(found) for claim in block.claims]
    assert [] == [each for each in said if each not in told]
    first = [line for line in lines(found, 100) if "--explain" not in line and not line.startswith("properties")]
    assert [] == [word for line in first for word in line.split() if word not in told and word[0] not in "├●─┤+│"]


AGENTS = """\
acme   12 questions × 2   ada, bob   baseline

bob against ada, baseline                            difference [95 % interval], n questions
                                                     -0.4       0              +0.7
  accuracy  0.80 → 0.60  -0.20 [-0.35, -0.05]  n=12   ├───●───┤ │                    worse, now poor
  effort    0.20 → 0.90  +0.70 [+0.70, +0.70]  n=12             │                 ●  better
"""


def test_agents_are_held_against_the_first_where_there_is_one_condition() -> None:
    told = [line for line in lines(with_agents(), 100) if not line.startswith("caution")]

    assert AGENTS.splitlines() == told[:6]


MEANS = """\
acme   12 questions × 2   ada   baseline

ada, baseline
  mean [95 % interval], n questions
  accuracy        0.50  [0.40, 0.60]  n=12
  answer time     0.50  [0.40, 0.70]  n=12   s, less is better
  acme/style      0.50  [0.40, 0.80]  n=12
  other/style     0.50  [0.40, 0.90]  n=12
  tone by strict  0.50  [0.40, 1.00]  n=12
  tone by kind    0.50  [0.40, 1.10]  n=12
  effort          0.20  [0.40, 1.20]  n=12
  no score: calls

24 trials, none failed   1 min 23 s   48 model calls   24 tool calls
1,000 tokens   $0.25
lost     3 scores without a value (2 because the scorer failed):
           keval show r --unscored
         acme/answer_time: 2 × ValueError
next     the lowest scores: keval show r --worst acme/accuracy
more     all that was found: keval report r --explain
"""


def test_a_run_of_one_arm_shows_its_means() -> None:
    found = with_agents()
    arms = [entry for entry in found.arms if entry.agent == "ada"]
    known = [
        attrs.evolve(entry, ci_low=0.4, ci_high=0.6 + 0.1 * place) if entry.mean else entry
        for place, entry in enumerate(arms)
    ]

    found = attrs.evolve(found, properties=(), family_power=None)
    shown = lines(attrs.evolve(found, effects=(), trials=found.trials[:1], arms=tuple(known), planned=24), 80)

    assert MEANS.splitlines() == shown


def test_the_lowest_scores_are_those_of_what_the_run_decides_by() -> None:
    found = summary()
    named = attrs.evolve(
        found,
        primary=("tone",),
        effects=tuple(attrs.evolve(each, family="exploratory") for each in found.effects),
    )

    assert "next     the lowest scores: keval show r --worst acme/answer_time" in lines(found, 100)
    assert "next     the lowest scores: keval show r --worst tone" in lines(named, 100)


LONG = "über die Maßen lange 名前" * 5


def test_a_single_question_that_does_not_differ_needs_no_row() -> None:
    one = effect(("acme/accuracy", None), "ada", 0.5, 0.5, 0.0, n=1, stderr=None, ci_low=None, ci_high=None)

    first, explained = ("\n".join(lines(summary(effects=(one,)), 100, level)) for level in LEVELS)

    assert "equal on the only question: accuracy" in first
    assert "equal on the only question: accuracy" in explained
    assert "one question" not in first + explained


@pytest.mark.parametrize("width", range(60, 141, 8))
def test_no_line_is_longer_than_the_console_is_wide_whatever_the_names(width: int) -> None:
    found = with_all_else()
    renamed: dict[str, Any] = {
        "effects": tuple(
            attrs.evolve(entry, metric="acme/" + LONG, agent=LONG, ci_high=1e5) for entry in summary().effects[:4]
        ),
        "scorers": (ScorerScale("acme/" + LONG, None, Scale(high=1e6)), *found.scorers),
        "trials": tuple(attrs.evolve(entry, agent=LONG) for entry in found.trials),
        "gates": tuple(attrs.evolve(gate, gate=LONG, reason=LONG) for gate in found.gates),
        "evaluation": LONG,
        "baseline": LONG,
    }

    for each in (summary(), found, attrs.evolve(found, **renamed)):
        shown = lines(each, width)

        assert [] == [line for line in shown if cell_len(line) > width or line != line.rstrip()]


def test_a_rise_is_green_only_where_more_is_better() -> None:
    console = Console(width=100, file=io.StringIO(), force_terminal=True, color_system="standard")

    print_report(summary(), console, Path("results/acme/r"), questions=12, under_way=False)

    file = console.file
    assert isinstance(file, io.StringIO)
    rows = [line for line in file.getvalue().splitlines() if "+2.25" in line or "+0.52" in line]
    assert [(True, False), (False, True)] == [("\x1b[31m" in row, "\x1b[32m" in row) for row in rows]


def test_metrics_are_told_apart() -> None:
    names = display_names([("a/style", None), ("b/style", None), ("a/word_count", None), ("tone", "x"), ("tone", "y")])

    assert ["a/style", "b/style", "word count", "tone by x", "tone by y"] == [*names.values()]
    checks = display_names([(f"{CHECK_PREFIX}{name}", None) for name in ("out/a_b.md is there", ALL_CHECKS)])
    assert ["out/a_b.md is there", "all checks"] == [*checks.values()]


def test_figures_of_judges_stand_below_each_other_beside_wide_names() -> None:
    spread = (JudgeSpread("rater", 20, 0.1, None),)
    agreement = tuple(Agreement(name, ("rater", "other"), 20, 0.9, None, (), spread) for name in ("tone", "语气语气"))

    shown = [*judging_lines(summary(agreement=agreement))]

    columns = [cell_len(line[: line.index(begin)]) for begin in ("0.90", "rater") for line in shown if begin in line]
    assert [12] * 4 == columns
