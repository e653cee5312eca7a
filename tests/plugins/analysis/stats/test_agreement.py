"""The agreement of judges, held against numbers from the literature and against a second way to compute them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from keval import Score, ScoreLine
from keval.records.manifest import ScorerEntry
from keval.records.scores import Judgement
from keval.store.serialization import to_plain
from keval_analysis.stats.judge_agreement import JudgeAgreement

NONE = None


def panel(rows: Sequence[Sequence[int | None]], repetitions: int = 1) -> dict[str, Any]:
    """The agreement of judges, each with a row of levels: one for each trial and repetition."""
    scorers = [ScorerEntry("tone", f"j{number}", rubric="r", repetitions=repetitions) for number, _ in enumerate(rows)]
    found = JudgeAgreement(scorers)
    for line in lines(rows, repetitions):
        found.add(line)
    (summary,) = found.summary()
    return dict(to_plain(summary))


def lines(rows: Sequence[Sequence[int | None]], repetitions: int) -> Iterable[ScoreLine]:
    for number, row in enumerate(rows):
        for unit, level in enumerate(row):
            trial, repetition = divmod(unit, repetitions)
            value = None if level is None else float(level)
            yield ScoreLine(
                trial=f"t{trial}",
                sample="s",
                agent="a",
                condition="c",
                repetition=1,
                metric="tone",
                judge=f"j{number}",
                score=Score(value, "level"),
                judgement=Judgement(repetition + 1),
            )


# Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), section C: four observers, twelve units.
OBSERVERS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, NONE, NONE, NONE],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NONE, 3],
    [NONE, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NONE],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NONE],
]


def test_alpha_is_that_of_krippendorffs_example() -> None:
    found = panel(OBSERVERS)

    assert (0.815, 11) == (round(found["alpha"], 3), found["n"])


def test_the_spread_of_a_judge_pools_the_variances_within_answers() -> None:
    # Variances 1, 0 and 0.5, with 2, 2 and 1 degrees of freedom.
    found = panel([[1, 2, 3, 4, 4, 4, 2, NONE, 3]], repetitions=3)

    (spread,) = found["spread"]
    assert (3, pytest.approx(((2 * 1 + 2 * 0 + 1 * 0.5) / 5) ** 0.5)) == (spread["n"], spread["sd"])
    assert (None, "one judge") == (found["alpha"], found["reason"])


def test_levels_that_lie_far_apart_cost_no_memory() -> None:
    (pair,) = panel([[0, 30_000], [30_000, 0]])["pairs"]

    assert (-1.0, None) == (pair["kappa"], pair["reason"])
