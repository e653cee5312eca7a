"""The table of statements: each is printed where its condition holds, and nowhere else."""

from __future__ import annotations

import math
from pathlib import Path
from runpy import run_path
from typing import Any

import attrs
import pytest

from keval import Scale, Summary
from keval.records.manifest import LookingEntry
from keval_analysis.findings.anchors import JudgeDrift
from keval_analysis.findings.effects import (
    Arm,
    Effect,
    FamilyPower,
    Interaction,
    PartialEffect,
    Ratio,
    Verdict,
    WithoutLost,
)
from keval_analysis.findings.reviews import CorrectedEffect
from keval_report.claims import Claim, said, word
from keval_report.run_claims import STATEMENTS, Difference

SURE: dict[str, Any] = {"difference": 0.3, "ci_low": 0.2, "ci_high": 0.4, "p_adjusted": 0.001, "verdict": "better"}
LOST: dict[str, Any] = {"difference": -0.3, "ci_low": -0.4, "ci_high": -0.2, "p_adjusted": 0.001, "verdict": "worse"}
NONE: dict[str, Any] = {"difference": 0.01, "ci_low": -0.03, "ci_high": 0.05, "p_adjusted": 0.6, "verdict": "same"}
OPEN: dict[str, Any] = {"difference": 0.1, "ci_low": -0.1, "ci_high": 0.3, "p_adjusted": 0.3, "verdict": "unclear"}
SMALL: dict[str, Any] = {**OPEN, "difference": 0.04, "mde": 0.2}
CLEAR: dict[str, Any] = {**OPEN, "ci_low": 0.01, "p_adjusted": 0.2}
PART: dict[str, Any] = {**SURE, "verdict": "interim"}
FLAT: dict[str, Any] = {"difference": 0.0, "stderr": 0.0, "verdict": "unclear", "ci_low": -0.1, "ci_high": 0.1}
ONE: dict[str, Any] = {"difference": 0.3, "n": 1, "stderr": None, "verdict": "unknown"}
SOURCE: dict[str, Any] = {"difference": 0.3, "n": 4, "stderr": None, "verdict": "unknown"}
EARLY: dict[str, Any] = {"difference": 0.3, "n": 9, "verdict": "unknown"}
HANGS: dict[str, Any] = {**SURE, "verdict": "unclear"}
ABSENT: dict[str, Any] = {"difference": None, "n": 0, "stderr": None, "verdict": "unknown"}


def claim(parts: dict[str, Any], **more: Any) -> Claim:
    found = Effect("acme/tone", None, "one", "docs", Arm("one", "none"), 30, 0.0, 0.05)
    return Claim(attrs.evolve(found, **{**parts, **more}), "tone", "one", Scale())


def corrected(parts: dict[str, Any], low: float | None, high: float | None, *, unlike: float = 0.1) -> Claim:
    """A claim that labels correct; `unlike` is the lower end of the difference of the judge's bias in the two arms."""
    whose = CorrectedEffect("acme/tone", "judge", "one", "docs", Arm("one", "none"), "condition", 30)
    middle = None if low is None or high is None else (low + high) / 2
    found = attrs.evolve(whose, difference=middle, ci_low=low, ci_high=high, bias_low=unlike, bias_high=0.5)
    return attrs.evolve(claim(parts), corrected=found)


def cost(verdict: Verdict, ratio: float | None = None) -> Effect:
    """A cost whose interval is above 0, with the adjusted p of its ratio."""
    of = None if ratio is None else Ratio(1.2, 1.1, 1.3, 0.01, ratio)
    return attrs.evolve(claim(SURE).effect, difference=0.2, ci_low=0.1, ci_high=0.3, verdict=verdict, ratio=of)


def apart(effect: float, against: float, p: float = 0.01, *, unfinished: bool = False) -> Difference:
    """Two agents' effects on a metric of which less is better."""
    ends = (effect - against, 0.1, None, None, p, p, effect, against)
    return Difference(Interaction("m", None, "docs", "none", "ada", "bob", 30, *ends), "lower", unfinished)


RUN = Summary(run="r", evaluation="e", baseline="none", neutral="omit", planned=1)
NOT_SURE = [claim(NONE), claim(OPEN), claim(PART), claim(FLAT), claim(ONE), claim(ABSENT)]
EXAMPLES: dict[str, tuple[list[Any], list[Any]]] = {
    "BETTER": ([claim(SURE)], [claim(LOST), *NOT_SURE]),
    "WORSE": ([claim(LOST)], [claim(SURE), *NOT_SURE]),
    "NO_DIFFERENCE": ([claim(NONE)], [claim(SURE), claim(OPEN), claim(SMALL), claim({**NONE, **FLAT})]),
    "CANNOT_TELL": ([claim(OPEN), claim(SMALL), claim(CLEAR)], [claim(SURE), claim(NONE), claim(PART), claim(FLAT)]),
    "INTERIM": ([claim(PART)], [claim(SURE), claim(OPEN), claim(FLAT)]),
    "ONE_QUESTION": ([claim(ONE)], [claim(SOURCE), claim(ABSENT), claim(ONE, difference=0.0)]),
    "NO_INTERVAL": ([claim(SOURCE)], [claim(ONE), claim(ABSENT), claim(OPEN)]),
    "TOO_EARLY": ([claim(EARLY)], [claim(SOURCE), claim(ONE), claim(PART), claim(EARLY, difference=0.0, stderr=0.0)]),
    "UNCHANGED": ([claim(FLAT), claim(ONE, difference=0.0)], [claim(NONE), claim(ONE), claim(FLAT, stderr=0.01)]),
    "NOTHING_SHARED": ([claim(ABSENT)], [claim(ONE), claim(FLAT)]),
    "ADJUSTED": ([claim(CLEAR)], [claim(OPEN), claim(SURE), claim(CLEAR, p_adjusted=None)]),
    "NEEDED": (
        [claim(OPEN, needed_samples=(20, 44))],
        [claim(OPEN), claim(OPEN, needed_samples=(20, 30)), claim(SURE, needed_samples=(20, 44))],
    ),
    "COULD_SEE": ([claim(SMALL)], [claim(SMALL, mde=None), claim(SMALL, difference=0.06), claim(NONE, mde=0.2)]),
    "NOT_SHARED": ([claim(ABSENT)], [claim(ONE), claim(FLAT)]),
    "HANGS_ON_LOST": ([claim(HANGS)], [claim(OPEN), claim(SURE), claim(CLEAR), claim(ABSENT)]),
    "SMALLER": ([claim(SMALL)], [claim(SMALL, mde=None), claim(SMALL, difference=0.06), claim(NONE, mde=0.2)]),
    "AMONG_MANY": ([claim(CLEAR)], [claim(OPEN), claim(SURE), claim(CLEAR, p_adjusted=None)]),
    "MORE_QUESTIONS": ([claim(OPEN, needed_samples=(20, 44))], [claim(OPEN), claim(SURE, needed_samples=(20, 44))]),
    "FEW_QUESTIONS": (
        [claim(ONE), claim(EARLY), claim(OPEN, n=9)],
        [claim(OPEN, n=10), claim(SURE, n=9), claim(SOURCE)],
    ),
    "ONE_SOURCE": ([claim(SOURCE)], [claim(ONE), claim(ABSENT), claim(OPEN)]),
    "UNLIKE_QUESTIONS": (
        [claim(HANGS, neutral_low=-0.1, neutral_high=0.5)],
        [claim(SURE, neutral_low=0.1, neutral_high=0.5), claim(OPEN, neutral_low=-0.1, neutral_high=0.5), claim(HANGS)],
    ),
    "LOST_COULD_DECIDE": (
        [claim(HANGS, bound_low=-0.1, bound_high=0.5)],
        [claim(LOST, bound_low=-0.5, bound_high=-0.1), claim(OPEN, bound_low=-0.5, bound_high=0.1), claim(HANGS)],
    ),
    "ONE_COULD_DECIDE": (
        [claim(SURE, n=20, worst_case=(-0.1, 0.5))],
        [
            claim(SURE, worst_case=(0.1, 0.5)),
            claim(SURE),
            claim(SURE, n=21, worst_case=(-0.1, 0.5)),
            claim(OPEN, n=20, worst_case=(-0.1, 0.5)),
        ],
    ),
    "RESTS_ON_OTHERS": (
        [claim(SURE, n=20, worst_case=(-0.1, 0.5)), claim(LOST, n=20, worst_case=(-0.5, 0.0))],
        [
            claim(SURE, worst_case=(0.1, 0.5)),
            claim(SURE),
            claim(SURE, n=21, worst_case=(-0.1, 0.5)),
            claim(OPEN, n=20, worst_case=(-0.1, 0.5)),
        ],
    ),
    "EXPLORATORY": ([claim(SURE, family="exploratory")], [claim(SURE, family="primary"), claim(SURE, family="all")]),
    "WITHOUT_LOST": ([claim(SURE, without_lost=WithoutLost(9, 0.1, -0.1, 0.3, "unclear"))], [claim(SURE)]),
    "DROPPED": ([claim(SURE, dropped=2)], [claim(SURE)]),
    "LOST_BOUNDS": ([claim(SURE, bound_low=0.0, bound_high=0.5)], [claim(SURE)]),
    "CORRECTED": ([corrected(OPEN, -0.1, 0.3)], [claim(OPEN), corrected(OPEN, None, None)]),
    "JUDGE_COULD_DECIDE": (
        [
            corrected(SURE, -0.1, 0.3),
            corrected(LOST, -0.3, 0.1),
            corrected(OPEN, 0.1, 0.3),
            corrected(NONE, -0.3, -0.1),
        ],
        [corrected(SURE, 0.1, 0.3), corrected(OPEN, -0.1, 0.3), corrected(SURE, -0.1, 0.3, unlike=-0.1), claim(SURE)],
    ),
    "NEUTRAL_BOUNDS": ([claim(SURE, neutral_low=0.0, neutral_high=0.5)], [claim(SURE)]),
    "IMPROVES": ([[claim(SURE)] * 2], [[], [claim(SURE), claim(OPEN)], [claim(LOST)]]),
    "GOT_WORSE": ([[claim(LOST)]], [[], [claim(LOST), claim(OPEN)], [claim(SURE)]]),
    "NOT_DECIDED": ([[claim(OPEN)]], [[], [claim(OPEN), claim(SURE)], [claim(NONE)]]),
    "EQUIVALENT": ([[claim(NONE)]], [[], [claim(NONE), claim(SMALL)]]),
    "NOT_CHANGED": ([[claim(FLAT)]], [[], [claim(FLAT), claim(NONE)]]),
    "TOO_FEW": ([[claim(ONE), claim(SOURCE)]], [[], [claim(ONE), claim(OPEN)]]),
    "INCOMPARABLE": ([[claim(ABSENT)]], [[], [claim(ABSENT), claim(ONE)]]),
    "SO_FAR": ([[claim(PART)]], [[], [claim(PART), claim(SURE)]]),
    "COSTS": ([cost("worse")], [cost("unclear"), cost("better"), cost("interim")]),
    "SAVES": ([cost("better")], [cost("unclear"), cost("worse"), cost("interim")]),
    "TAKES": ([cost("unclear", 0.04)], [cost("worse"), cost("worse", 0.06), cost("interim", 0.04)]),
    "IS_THAN": ([[claim(SURE), claim(LOST)]], [[], [claim(SURE), claim(OPEN)]]),
    "NO_CLEAR_DIFFERENCE": ([[claim(OPEN), claim(NONE)]], [[claim(OPEN), claim(LOST)]]),
    "DOES_MORE": (
        [apart(-0.5, -0.1)],
        [apart(0.1, 0.5), apart(-0.5, 0.1), apart(-0.5, -0.1, 0.06), apart(-0.5, -0.1, unfinished=True)],
    ),
    "DIFFERS_BY_AGENT": (
        [apart(0.1, 0.5), apart(-0.5, 0.1)],
        [apart(-0.5, -0.1), apart(0.1, 0.5, 0.06), apart(0.1, 0.5, unfinished=True)],
    ),
    "INFORMATION_HELPS": ([[claim(LOST)]], [[], [claim(SURE)], [claim(OPEN)]]),
    "INFORMATION_HARMS": ([[claim(SURE)]], [[], [claim(LOST)], [claim(OPEN)]]),
    "NO_CLEAR_INFORMATION": ([[claim(OPEN)]], [[claim(OPEN), claim(SURE)]]),
    "PARTS_MISSED": ([[claim(LOST)]], [[], [claim(SURE)], [claim(OPEN)]]),
    "PARTS_IN_THE_WAY": ([[claim(SURE)]], [[], [claim(LOST)], [claim(OPEN)]]),
    "PARTS_NOT_MISSED": ([[claim(OPEN)]], [[claim(OPEN), claim(LOST)], [claim(OPEN), claim(SURE)]]),
    "PARTS_OPEN": ([[claim(OPEN)]], [[claim(OPEN), claim(LOST)], [claim(OPEN), claim(SURE)]]),
    "WHERE_CALLED": ([claim(OPEN, where_called=PartialEffect(3, -0.5, None, None))], [claim(OPEN)]),
    "PRIMARY_WOULD": ([attrs.evolve(RUN, family_power=FamilyPower(28, 0.4, 2, 0.7))], [RUN]),
    "JUDGE_DRIFT": (
        [JudgeDrift("r", 9, 0.3, 0.1, 0.5), JudgeDrift("r", 9, -0.3, -0.5, -0.1)],
        [JudgeDrift("r", 9, 0.3, -0.1, 0.5), JudgeDrift("r", 1, 0.3), JudgeDrift(reason="none")],
    ),
    "LOOKED_BEFORE": (
        [attrs.evolve(RUN, looking=LookingEntry(before=(30,)))],
        [RUN, attrs.evolve(RUN, looking=LookingEntry("docs/tone"))],
    ),
    "HOLDS": (
        [attrs.evolve(RUN, looking=LookingEntry("docs/tone")), attrs.evolve(RUN, unfinished=True)],
        [RUN, attrs.evolve(RUN, unfinished=True, play=True)],
    ),
}
"""For each statement, what it may be said of, and what it must not be said of."""


def test_every_statement_has_examples() -> None:
    assert EXAMPLES.keys() == STATEMENTS.keys()


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_statement_is_printed_only_where_its_condition_holds(name: str) -> None:
    statement, (true, false) = STATEMENTS[name], EXAMPLES[name]

    assert [True] * len(true) == [statement.holds(each) for each in true]
    assert [False] * len(false) == [statement.holds(each) for each in false]


def test_every_claim_has_one_verdict() -> None:
    """No two of the words of a verdict hold for one claim, and one always does."""
    verdicts = ["BETTER", "WORSE", "NO_DIFFERENCE", "CANNOT_TELL", "INTERIM", "ONE_QUESTION", "NO_INTERVAL"]
    verdicts += ["TOO_EARLY", "UNCHANGED", "NOTHING_SHARED"]
    claims = [claim(each) for each in (SURE, LOST, NONE, OPEN, SMALL, CLEAR, HANGS)]
    claims += [claim(each) for each in (PART, FLAT, ONE, SOURCE, EARLY, ABSENT)]

    for each in claims:
        holding = [name for name in verdicts if STATEMENTS[name].holds(each)]
        assert 1 == len(holding)
        assert said(STATEMENTS[holding[0]], each) == word(each)
        assert (holding[0] not in ("BETTER", "WORSE", "INTERIM")) == each.is_open
        primary = attrs.evolve(each, effect=attrs.evolve(each.effect, family="primary"))
        assert ["explained" if each.is_open else "first", "first"] == [each.level, primary.level]


def test_a_scale_without_an_end_has_no_margin() -> None:
    endless = attrs.evolve(claim(NONE), scale=Scale(0, math.inf))

    assert math.isinf(endless.scale.least)


def test_the_documentation_lists_every_statement_with_its_condition() -> None:
    written = run_path(str(Path(__file__).parents[3] / "docs" / "site" / "tables.py"))

    listed = [*written["statements"]()]

    assert [] == [row for each in STATEMENTS.values() if (row := f"| `{each.says}` | {each.when} |") not in listed]
