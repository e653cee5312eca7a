"""How often 95 % intervals hold the true effect where the judge errs: by the judge alone, and corrected by labels.

Prints the table of `docs/statistics.md`: people and a planted judge grade the answers of two arms, and people's levels
of some answers are known. A cell has how many per cent of the intervals hold the true effect, by the judge alone → and
corrected, and how wide they are on average; `none` is how often labels were too much alike for a corrected one.
`corrected_coverage.py 300` draws each so often, as for the documentation.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import attrs
import numpy as np

from keval_analysis.stats.corrected import Judged, Labelled, corrected, refusal
from keval_analysis.stats.paired import Differences, paired_effects
from keval_analysis.stats.units import FloatArray, IntArray

FOR_THE_TRUTH = 400_000
EVEN = (-1.5, -0.7, 0.2, 0.9)
PASS = (-0.5,)
NEARLY_ALL_PASS = (-1.5,)
MOSTLY_BEST = (-3.0, -2.5, -2.0, -1.0)
"""Where levels begin, in standard deviations of how good answers are: five levels, or two."""


@attrs.frozen
class Judge:
    """What is planted: by how many levels the judge is kinder to each of two arms, and where it draws levels by lot.

    Of the second arm, so many answers are worth nothing, and the judge is `blind` to that: it gives the best level.
    """

    name: str
    kinder: tuple[float, float] = (0.0, 0.0)
    random: float = 0.0
    blind: float = 0.0


JUDGES = (
    Judge("perfect"),
    Judge("lenient to both arms", (0.7, 0.7)),
    Judge("+0.60 on one arm", (0.0, 0.60)),
    Judge("-0.43 on one arm, +0.60 on the other", (-0.43, 0.60)),
    Judge("random on a tenth", random=0.1),
    Judge("off by one on a tenth, and blind to 3 % disasters", (0.1, 0.1), blind=0.03),
)


@attrs.frozen
class Design:
    """How many questions there are, how many answers of each arm are labelled, and how these are drawn.

    `pairs` has the answers of both arms to the same questions, `apart` those of each arm to questions of its own, and
    `spread` those to questions as far apart as can be in the order of the judge's levels. `better` is by how much the
    second arm is better, in standard deviations.
    """

    name: str
    begins: tuple[float, ...] = EVEN
    questions: int = 35
    labels: int = 15
    drawn: str = "pairs"
    better: float = 0.0


DESIGNS = (
    Design("15 pairs"),
    Design("10 pairs", labels=10),
    Design("15 pairs, spread over the judge's levels", drawn="spread", better=0.5),
    Design("15 answers of each arm", drawn="apart"),
    Design("pass or fail, 69 and 84 % pass, 15 pairs", PASS, better=0.5),
    Design("pass or fail, 93 and 98 % pass, 30 pairs", NEARLY_ALL_PASS, questions=100, labels=30, better=0.5),
    Design("84 % on the best level, 80 answers of each arm", MOSTLY_BEST, questions=200, labels=80, drawn="apart"),
)


def graded(rng: np.random.Generator, judge: Judge, design: Design, questions: int) -> tuple[FloatArray, FloatArray]:
    """Draw the levels by people and by the judge: a row for each of two arms."""
    most = len(design.begins)
    good = 0.7 * rng.normal(size=questions) + 0.7 * rng.normal(size=(2, questions))
    good[1] += design.better
    people = np.digitize(good, design.begins)
    # Kinder by a part of a level means by a level as often.
    kinder = np.floor(np.array(judge.kinder)[:, None] + rng.uniform(size=people.shape))
    levels = np.clip(people + kinder, 0, most)
    by_lot = rng.uniform(size=people.shape) < judge.random
    levels = np.where(by_lot, rng.integers(0, most + 1, size=people.shape), levels)
    disaster = rng.uniform(size=questions) < judge.blind
    people[1], levels[1] = np.where(disaster, 0, people[1]), np.where(disaster, most, levels[1])
    return people.astype(np.float64), levels.astype(np.float64)


def labelled(rng: np.random.Generator, design: Design, levels: FloatArray) -> tuple[IntArray, IntArray]:
    """Draw the questions whose answers are labelled in either arm."""
    order = rng.permutation(design.questions)
    if design.drawn == "apart":
        return order[: design.labels], rng.permutation(design.questions)[: design.labels]
    if design.drawn == "spread":
        order = order[np.lexsort((levels[1, order], levels[0, order]))]
        step = design.questions / design.labels
        order = order[np.floor(rng.uniform(0, step) + step * np.arange(design.labels)).astype(np.int64)]
    return order[: design.labels], order[: design.labels]


def truth(judge: Judge, design: Design) -> float:
    """Return the true effect: that of people's levels on very many questions."""
    people, _ = graded(np.random.default_rng(0), judge, design, FOR_THE_TRUTH)
    return float(np.mean(people[1] - people[0])) if design.better or judge.blind else 0.0


@attrs.frozen
class Coverage:
    """How often intervals by the judge alone and corrected ones hold the truth, and how wide they are.

    `none` is how often there is no corrected one.
    """

    alone: float
    alone_width: float
    corrected: float
    corrected_width: float
    none: float


def coverage(judge: Judge, design: Design, times: int, seed: Sequence[int]) -> Coverage:
    """Draw runs, and return what their intervals hold of the true effect of the second arm."""
    rng, true = np.random.default_rng(seed), truth(judge, design)
    every, ends = [], []
    for _ in range(times):
        people, levels = graded(rng, judge, design, design.questions)
        every.append(Differences(levels[1] - levels[0], span=float(len(design.begins))))
        against, arm = (
            Labelled(people[row, chosen], levels[row, chosen], chosen)
            for row, chosen in enumerate(labelled(rng, design, levels))
        )
        if refusal(arm, against, float(len(design.begins))) is None:
            judged = Judged(levels[1] - levels[0], np.arange(design.questions), float(len(design.begins)))
            found = corrected(judged, arm, against)
            ends.append((found.ci_low, found.ci_high))
    alone = np.array([(each.low, each.high) for each in paired_effects(every)])
    (by_judge, width), (better, wider) = (
        (float(np.mean((low <= true) & (true <= high))), float(np.mean(high - low)))
        for low, high in (alone.T, np.array(ends or [(np.nan, np.nan)]).T)
    )
    return Coverage(by_judge, width, better, wider, 1 - len(ends) / times)


def main(times: int) -> None:
    """Print the table."""
    heads = ["labels (wanted: 95 %)", *(judge.name for judge in JUDGES), "none"]
    print(f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|")
    for number, design in enumerate(DESIGNS):
        found = [coverage(judge, design, times, [number, place]) for place, judge in enumerate(JUDGES)]
        cells = (
            f"{100 * each.alone:.0f} → {100 * each.corrected:.0f} ({each.alone_width:.2f} → {each.corrected_width:.2f})"
            for each in found
        )
        print(f"| {design.name} | {' | '.join(cells)} | {100 * np.mean([each.none for each in found]):.0f} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
