"""How often `keval check` calls an arm better or worse than itself, on planted scores whose repetitions are alike.

Prints the table of `docs/check.md`: for several shapes of scores and numbers of questions, the mean of the figure
`false_verdicts` over as many data sets as are asked for, and, for comparison, how often two arms of data sets that
differ in nothing are called different, which is what the figure estimates. `false_verdicts.py 4000` as for the
documentation.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

import numpy as np

from keval_instrument.repeats import FloatArray, false_verdicts, split_in_halves

SIZES = (10, 20, 40)
REPETITIONS = 4
SPLITS = 4


def levels(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Draw levels from 1 to 5 of questions that are harder or easier; repetitions differ by about half a level."""
    hard = rng.normal(3.5, 1.0, (*shape[:-1], 1))
    return np.asarray(np.clip(np.rint(hard + rng.normal(0, 0.6, shape)), 1, 5))


def passes(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Draw 0 and 1 of questions that are passed with another probability each."""
    return np.asarray(rng.random(shape) < rng.beta(2, 1, (*shape[:-1], 1)), np.float64)


def rare(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Draw scores that are 1 but for one in 20."""
    return np.asarray(rng.random(shape) < 0.95, np.float64)


def skewed(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
    """Draw shares that are mostly near 1, with a long tail."""
    return np.asarray(np.clip(1 - rng.gamma(0.3, 0.4, shape), 0, 1))


SHAPES: Mapping[str, tuple[Callable[[np.random.Generator, tuple[int, ...]], FloatArray], float]] = {
    "levels from 1 to 5": (levels, 4.0),
    "passed or not": (passes, 1.0),
    "one in 20 not passed": (rare, 1.0),
    "shares near 1": (skewed, 1.0),
}


def rates(name: str, questions: int, times: int) -> tuple[float, float]:
    """Return the mean of the figure, and how often the halves of fresh data sets have a verdict."""
    draw, span = SHAPES[name]
    rng = np.random.default_rng(questions)
    told, fresh = [], 0
    for _ in range(times):
        table = draw(rng, (1, questions, REPETITIONS))
        order = np.argsort(rng.random((SPLITS + 1, *table.shape)), axis=-1)
        splits = split_in_halves(table, order, np.arange(questions), span)
        told.append(false_verdicts({"scorer": name}, [splits]).value or 0.0)
        fresh += bool(np.nan_to_num(splits.p[0], nan=1.0)[0] <= 0.05)
    return float(np.mean(told)), fresh / times


def main(times: int) -> None:
    """Print the table."""
    print("| scores | questions | `false_verdicts`, wanted at most 5 % | between fresh arms |\n|---|---|---|---|")
    for name in SHAPES:
        for questions in SIZES:
            told, fresh = rates(name, questions, times)
            print(f"| {name} | {questions} | {100 * told:.1f} % | {100 * fresh:.1f} % |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
