"""How often 95 % intervals of weighted kappa hold the truth, on planted data: a person and a judge on five levels.

Prints the table of `docs/statistics.md`: for 10 to 100 questions with two answers each, how many per cent of the
intervals cover, and how wide they are on average; `none` is how many per cent of the draws had no interval.
`kappa_coverage.py 2000` draws each so often, as for the documentation.
"""

from __future__ import annotations

import sys

import attrs
import numpy as np

from keval_analysis.stats.agreement import kappa_interval, weighted_kappa
from keval_analysis.stats.units import FloatArray, IntArray

SIZES = (10, 20, 40, 100)
ANSWERS = 2
FOR_THE_TRUTH = 400_000
EVEN = (-1.5, -0.7, 0.2, 0.9)
HIGH = (-2.5, -2.0, -1.5, -0.8)
"""Where levels begin, in standard deviations of how good answers are: spread out, or nearly all of them at the top."""


@attrs.frozen
class Scenario:
    """How much person and judge err, in standard deviations of how good answers are, and where levels begin."""

    name: str
    error: float
    begins: tuple[float, ...] = EVEN


SCENARIOS = (
    Scenario("they agree well", 0.3),
    Scenario("they agree fairly", 0.7),
    Scenario("they hardly agree", 2.0),
    Scenario("most answers are at the best level", 0.7, HIGH),
)


def drawn(rng: np.random.Generator, scenario: Scenario, questions: int) -> tuple[FloatArray, FloatArray, IntArray]:
    """Draw the levels of a person and a judge, who is a little kinder, and the question of each answer."""
    of = np.repeat(np.arange(questions), ANSWERS)
    good = 0.7 * rng.normal(size=questions)[of] + 0.7 * rng.normal(size=len(of))
    person, judge = (
        1.0 + np.digitize(good + kinder + scenario.error * rng.normal(size=len(of)), scenario.begins)
        for kinder in (0.0, 0.2)
    )
    return person.astype(np.float64), judge.astype(np.float64), of.astype(np.int64)


def main(times: int) -> None:
    """Print the table."""
    print("| planted | kappa | questions | covered, wanted 95 % | width | none |\n|---|---|---|---|---|---|")
    for number, scenario in enumerate(SCENARIOS):
        truth = weighted_kappa(*drawn(np.random.default_rng(number), scenario, FOR_THE_TRUTH)[:2])
        assert truth is not None
        for questions in SIZES:
            rng = np.random.default_rng([number, questions])
            found = [kappa_interval(*drawn(rng, scenario, questions)) for _ in range(times)]
            ends = [each for each in found if each is not None]
            covered = np.mean([low <= truth <= high for low, high in ends])
            width = np.mean([high - low for low, high in ends])
            none = 1 - len(ends) / times
            print(f"| {scenario.name} | {truth:.2f} | {questions} | {covered:.1%} | {width:.2f} | {none:.1%} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
