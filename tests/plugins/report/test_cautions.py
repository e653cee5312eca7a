"""Cautions: each is said where it could change a decision, and nowhere else."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from keval.records.manifest import ReplayEntry
from keval.records.scores import Scale
from keval.records.servers import Sharing
from keval_analysis.findings.effects import Arm, Contrast, Effect
from keval_analysis.findings.reviews import JudgeAgreementWithPeople, ReviewFindings
from keval_analysis.findings.summary import (
    Agreement,
    ArmScore,
    ArmTrials,
    Compliance,
    GivenUp,
    JudgeSpread,
    ScorerScale,
    Summary,
    UnlikeCalls,
    UsageTotal,
)
from keval_report.cautions import cautions
from keval_report.contrasts import all_blocks

SURE: dict[str, Any] = {"difference": 0.3, "ci_low": 0.2, "ci_high": 0.4, "verdict": "better"}


def arm(condition: str = "docs", **more: Any) -> ArmTrials:
    given: dict[str, Any] = {"trials": 20, "failed": 0, "retried": 0, "failures": {}, "tool_calls": 0, "model_calls": 0}
    given |= {"usage": UsageTotal(), "given_up": GivenUp(), "duration": 1.0, "compliance": None}
    return ArmTrials("ada", condition, **{**given, **more})


def effect(condition: str = "docs", against: str = "baseline", **more: Any) -> Effect:
    return Effect(
        "acme/tone", None, "ada", condition, Arm("ada", against, "r"), **{"n": 20, "stderr": 0.05, **SURE, **more}
    )


def scores(condition: str) -> ArmScore:
    given: dict[str, Any] = {"n": 20, "mean": 0.5, "stderr": 0.1, "band": None, "scored": 20, "neutral": 0}
    given |= {"unscored": 0, "failed": 0, "failures": {}, "missing": 0}
    return ArmScore("ada", condition, "acme/tone", None, **given)


WHOLE = Summary(
    run="r",
    evaluation="e",
    baseline="baseline",
    neutral="omit",
    planned=40,
    scorers=(ScorerScale("acme/tone", None, Scale()),),
    trials=(arm("baseline"), arm()),
    arms=tuple(scores(condition) for condition in ("baseline", "docs")),
    effects=(effect(),),
)
JUDGES = Agreement("tone", ("one", "two"), 20, 0.9, None, (), (JudgeSpread("one", 20, 0.1, None),))


def placebo(**more: Any) -> Contrast:
    found = effect("sham", "docs", **more)
    return Contrast("placebo", "sham", "docs", {"docs": [{"results": "scrambled"}]}, effects=(found,))


def people(kappa: float) -> ReviewFindings:
    unknown: dict[str, Any] = dict.fromkeys(("reason", "ci_low", "ci_high", "alpha", "bias_low", "bias_high"))
    found: dict[str, Any] = {"n": 20, "questions": 20, "pairs": 20, "same": 0.9, "near": 1.0, "bias": 0.0}
    found |= {"kappa": kappa, "levels": (1, 2), "confusion": ((10, 0), (0, 10)), **unknown}
    return ReviewFindings(20, 20, 0, 0, judges=(JudgeAgreementWithPeople("tone", "one", **found),))


REPLAY = ReplayEntry("old", "2026-10-22T10:11:12+00:00", "fail")
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "trials were not run": ({"planned": 50, "stopped": "budget used"}, {}, "10 trials were not run: budget used."),
    "a limit left something out": ({"stopped": "budget used"}, {}, "budget used."),
    "it is unfinished": ({"unfinished": True}, {"unfinished": True, "effects": ()}, "interim, 40 trials: intervals"),
    "an arm failed often": (
        {"trials": (arm("baseline"), arm(failed=2))},
        {"trials": (arm("baseline"), arm(failed=1))},
        "2 of 20 trials of ada docs failed; effects are of the others",
    ),
    "an arm called no tool": (
        {"trials": (arm("baseline"), arm(uncalled=10))},
        {"trials": (arm("baseline"), arm(uncalled=9))},
        "ada docs called no tool in 10 of 20 trials",
    ),
    "simulated models got nothing of the tools": (
        {"trials": (arm("baseline"), arm("more", unserved=0), arm(uncalled=1, unserved=3))},
        {"trials": (arm("baseline"), arm("more", unserved=0), arm(uncalled=1, unserved=2))},
        "simulated: 3 of 40 trials called no tool or had only errors; says nothing of your server. Ask a real model: `",
    ),
    "scores are lost": (
        {"effects": (effect(bound_low=-0.1, bound_high=0.6, verdict="unclear", p_adjusted=0.01),)},
        {"effects": (effect(bound_low=0.1, bound_high=0.6),)},
        "tone: so many scores are lost that they could decide",
    ),
    "arms judge unlike questions": (
        {"effects": (effect(neutral_low=-0.1, neutral_high=0.6, verdict="unclear", p_adjusted=0.01),)},
        {"effects": (effect(neutral_low=0.1, neutral_high=0.6),)},
        "tone: judged on far fewer answers of one arm than of the other, which could decide",
    ),
    "one question could decide": (
        {"effects": (effect(worst_case=(-0.1, 0.6)),)},
        {"effects": (effect(worst_case=(0.1, 0.6)),)},
        "tone: a single question more could change the verdict",
    ),
    "a placebo does as well": (
        {"contrasts": (placebo(verdict="unclear", ci_low=-0.1),)},
        {"contrasts": (placebo(difference=-0.3, ci_low=-0.4, ci_high=-0.2, verdict="worse"),)},
        "docs is not clearly better than its placebo sham: its information may not be what helps",
    ),
    "a placebo does better": (
        {"contrasts": (placebo(),)},
        {},
        "tone. The placebo scores better on these metrics, so the information in the results does harm",
    ),
    "trials were run again for want of a tool call": (
        {"trials": (arm("baseline"), arm(compliance=Compliance(20, 15, 20, discarded=5)))},
        {"trials": (arm("baseline"), arm(compliance=Compliance(20, 20, 20)))},
        "ada docs: 15 of 20 trials (75 %) used tools as required at the first attempt; 5 answers were discarded",
    ),
    "judges disagree": (
        {"agreement": (attrs.evolve(JUDGES, alpha=0.6),)},
        {"agreement": (attrs.evolve(JUDGES, alpha=0.7),)},
        "judges hardly agree on tone: Krippendorff's alpha 0.60",
    ),
    "a judge disagrees with itself": (
        {"agreement": (attrs.evolve(JUDGES, spread=(JudgeSpread("one", 20, 0.7, None),)),)},
        {"agreement": (JUDGES,)},
        "one grades tone of the same answer differently, by 0.70 levels (sd)",
    ),
    "a judge disagrees with people": (
        {"reviews": people(0.2)},
        {"reviews": people(0.6)},
        "one hardly agrees with people on tone: weighted kappa 0.20",
    ),
    "a server may mix trials up": (
        {"servers": {"docs": {"shelf": Sharing(True, "the config says so", verified=False)}}},
        {"servers": {"docs": {"shelf": Sharing(True, "every tool is read-only")}}},
        "trials share the server shelf, and whether it keeps them apart is not verified",
    ),
    "trials may have changed each other": (
        {"unlike_calls": tuple(UnlikeCalls("shelf", name, 2, 5) for name in "abcd")},
        {"unlike_calls": ()},
        (
            "trials share the server shelf, and equal calls gave other results than in an earlier trial"
            " (a 2 of 5, b 2 of 5, c 2 of 5, 1 more): it remembers, or its data changed"
        ),
    ),
    "a replay has changes": (
        {"replay": attrs.evolve(REPLAY, changes=("the judge",))},
        {"replay": REPLAY},
        "Changed since: the judge.",
    ),
    "answers were cut off": (
        {"trials": (arm("baseline"), arm(truncated=3))},
        {},
        "3 answers were cut off at a limit of length, and scored all the same: 3 of 20 of ada docs",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_caution_is_said_where_it_holds_and_nowhere_else(case: str) -> None:
    holding, other, told = CASES[case]

    said, silent = ([*_cautions(attrs.evolve(WHOLE, **changes))] for changes in (holding, other))

    assert [True] == [each.startswith(told) for each in said]
    assert [] == silent


def _cautions(summary: Summary) -> list[str]:
    return cautions(summary, all_blocks(summary, "first"))


def test_what_is_still_to_be_run_is_not_called_left_out() -> None:
    (told, *_) = cautions(attrs.evolve(WHOLE, planned=50), [], under_way=True)

    assert "10 trials are still to be run." == told


def test_a_caution_about_one_of_several_blocks_names_it() -> None:
    other = effect("more", worst_case=(-0.1, 0.6))
    found = attrs.evolve(
        WHOLE, arms=(*WHOLE.arms, scores("more")), trials=(*WHOLE.trials, arm("more")), effects=(effect(), other)
    )

    (told,) = _cautions(attrs.evolve(found, planned=60))

    assert "tone (more against baseline): a single question more could change the verdict" == told
