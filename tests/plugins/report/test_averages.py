"""The average over all metrics: what counts, with which weight, and which arm is highest."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from keval import Scale
from keval.records.manifest import ScorerEntry
from keval_analysis.findings.effects import Arm
from keval_analysis.stats.averages import averages_of
from keval_analysis.stats.score_sums import SampleValues, Sums
from keval_report.means import winners
from tests.conftest import Project

SCORERS = (
    ScorerEntry("share", None, Scale(0, 1)),
    ScorerEntry("errors", None, Scale(0, 10, better="lower")),
    ScorerEntry("tone", "one", Scale(1, 5)),
    ScorerEntry("tone", "two", Scale(1, 5)),
    ScorerEntry("seconds", None, Scale(0, math.inf, better="lower")),
)


def values(*columns: Sequence[float | None]) -> list[SampleValues]:
    """What each scorer found in an arm, sample by sample; `None` is no score."""
    found = []
    for column in columns:
        sums = Sums()
        for sample, value in enumerate(column):
            if value is not None:
                sums.add(sample, value)
        found.append(sums.values())
    return found


BASE, DOCS = Arm("a", "baseline"), Arm("a", "docs")
FLAT = [[0.5] * 4, [5.0] * 4, [3.0] * 4, [3.0] * 4, [1.0] * 4]


def test_metrics_count_as_shares_of_their_scale_and_a_rubric_once() -> None:
    docs = values([0.6, 0.8, 0.7, 0.7], [2.0] * 4, [5.0] * 4, [4.0] * 4, [9.0] * 4)

    found = averages_of(SCORERS, {BASE: values(*FLAT), DOCS: docs}, None)

    shares = {arm.condition: round(arm.average, 9) for arm in found.arms}
    assert {"baseline": 0.5, "docs": round((0.7 + 0.8 + (1.0 + 0.75) / 2) / 3, 9)} == shares
    assert (("share", "errors", "tone"), {"seconds": "its scale has no end"}) == (found.metrics, found.left_out)


def test_the_difference_of_averages_has_the_interval_over_questions() -> None:
    """Scores of a question rise and fall together, so that metrics do not make the error smaller by their number."""
    rng = np.random.default_rng(3)
    hard = rng.normal(0, 0.1, 40)
    scorers = [ScorerEntry(name, None, Scale(0, 1)) for name in "abcdefgh"]
    ours = values(*([*(0.6 + hard)] for _ in scorers))
    theirs = values(*([0.5] * 40 for _ in scorers))

    found = averages_of(scorers, {BASE: theirs, DOCS: ours}, None).differences[0]

    mean, reach = 0.1 + hard.mean(), 2.0227 * hard.std(ddof=1) / 40**0.5
    assert found.ci_low is not None
    assert found.ci_high is not None
    assert pytest.approx(mean) == found.difference
    assert mean - found.ci_low >= reach * 0.999
    assert (found.ci_high - found.ci_low) < 2.3 * reach


def test_a_question_counts_as_much_as_in_the_means_that_are_shown() -> None:
    """A metric has scores for one of four questions, and still counts a half."""
    scorers = [ScorerEntry(name, None, Scale(0, 1)) for name in ("all", "one")]
    ours, theirs = values([0.5] * 4, [1.0, None, None, None]), values([0.5] * 4, [0.0, None, None, None])

    found = averages_of(scorers, {BASE: theirs, DOCS: ours}, None)

    assert {"baseline": 0.25, "docs": 0.75} == {arm.condition: arm.average for arm in found.arms}
    assert pytest.approx(0.5) == found.differences[0].difference


def test_arms_are_held_against_each_other_on_the_questions_that_both_have() -> None:
    """One arm has no score for the hard half; on the easy half, both are alike."""
    scorers = [ScorerEntry(name, None, Scale(0, 1)) for name in ("all", "half")]
    easy, hard = [0.9, 0.8, 0.9, 0.8], [0.1, 0.2, 0.1, 0.2]
    full, lost = values([0.5] * 8, easy + hard), values([0.5] * 8, [*easy, *[None] * 4])

    found = averages_of(scorers, {BASE: full, DOCS: lost}, None)

    assert {"baseline": 0.5, "docs": 0.675} == {arm.condition: round(arm.average, 9) for arm in found.arms}
    assert pytest.approx(0.0) == found.differences[0].difference
    (best,) = winners(found)
    assert ("docs", False) == (best.winner, best.sure)


def test_arms_that_share_no_question_are_not_held_against_each_other() -> None:
    scorers = [ScorerEntry(name, None, Scale(0, 1)) for name in ("all", "half")]
    first, second = values([0.5] * 4, [0.1, 0.2, None, None]), values([0.5] * 4, [None, None, 0.8, 0.9])

    found = averages_of(scorers, {BASE: first, DOCS: second}, None)

    assert [None] == [each.difference for each in found.differences]
    assert [False] == [best.sure for best in winners(found)]


def test_a_metric_that_an_arm_has_no_mean_of_is_left_out_and_said() -> None:
    lacking = values([0.7] * 4, [None] * 4, [5.0] * 4, [4.0] * 4, [9.0] * 4)

    found = averages_of(SCORERS, {BASE: values(*FLAT), DOCS: lacking}, None)

    assert {"errors": "an arm has no mean of it", "seconds": "its scale has no end"} == found.left_out


def test_the_highest_is_ahead_of_each_other_arm() -> None:
    more = Arm("a", "more")
    third = values([0.71, 0.69, 0.7, 0.7], *FLAT[1:])
    docs = values([0.7, 0.7, 0.69, 0.7], *FLAT[1:])

    (best,) = winners(averages_of(SCORERS, {BASE: values(*FLAT), DOCS: docs, more: third}, None))

    assert ("condition", "a", "more", False) == (best.among, best.within, best.winner, best.sure)
    assert ["docs", "baseline"] == [lead.against.condition for lead in best.leads]


@pytest.mark.parametrize(
    ("docs", "told"),
    [
        ([0.25, 0.75, 0.25, 0.85, 0.15, 0.25], "; none is surely highest: +0.08 [-0.07, +0.29]"),
        ([0.45, 0.55, 0.52, 0.48, 0.43, 0.57], "; docs is highest, by +0.12 [+0.03, +0.15]"),
    ],
    ids=["open", "sure"],
)
def test_an_arm_is_highest_if_the_interval_over_questions_says_so(
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

    outcome = project.keval("run", "eval.yaml", "--explain")

    assert told in outcome.stdout


def test_one_metric_or_one_arm_has_no_average(project: Project) -> None:
    project.write(
        q_jsonl='{"id": "a", "question": "?"}\n',
        one_jsonl='{"id": "a", "condition": "docs", "response": "0.5"}\n',
        eval_yaml="""
            dataset: {path: q.jsonl}
            agents: {one: {type: recorded, path: one.jsonl}}
            conditions: {docs: {}}
            metrics: [number/rating, double/length]
        """,
    )

    assert "Average over" not in project.keval("run", "eval.yaml", "--explain").stdout
