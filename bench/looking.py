"""How often a run without an effect is called better or worse if it is looked at while it runs, and what looking costs.

Prints the figures of `docs/statistics.md`. Each run has up to 200 questions and ends at the first look whose 95 %
interval excludes 0: that of one look, taken after every question from the tenth on; that of the confidence sequence;
and that of four declared looks. `looking.py 4000` draws so many runs of each kind, as for the documentation.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import attrs
import numpy as np

from keval_analysis.stats.looking import FIRST_LOOK, Looking
from keval_analysis.stats.paired import Rule
from keval_analysis.stats.units import FloatArray, Units

QUESTIONS = 200
LOOKS = 4
EFFECT = 0.2
"""A difference, in standard deviations, that one look at all questions finds in about 80 of 100 runs."""

Draw: TypeAlias = Callable[[np.random.Generator, tuple[int, int], float], FloatArray]
"""Returns differences of runs by question, with this mean and a standard deviation of about 1."""


def _rare(rng: np.random.Generator, shape: tuple[int, int], mean: float) -> FloatArray:
    """Draw differences of scores of 0 and 1 of which one in five differs."""
    more = mean * np.sqrt(0.2) / 2
    return np.asarray(rng.choice([-1.0, 0.0, 1.0], p=[0.1 - more, 0.8, 0.1 + more], size=shape) / np.sqrt(0.2))


SHAPES: Mapping[str, tuple[Draw, float]] = {
    "normal": (lambda rng, shape, mean: rng.normal(mean, size=shape), np.inf),
    "skewed (exponential)": (lambda rng, shape, mean: rng.exponential(size=shape) - 1.0 + mean, np.inf),
    "0/1, one in five differs": (_rare, 1 / np.sqrt(0.2)),
}
"""How differences are distributed, by name, and how wide their scale is."""


@attrs.frozen
class Way:
    """A way of looking: after how many questions each look is, and what it is held against then."""

    name: str
    at: Sequence[int]
    looking: Callable[[int], Looking | None]


def ways(questions: int = QUESTIONS, every: int = 1) -> list[Way]:
    """Return the ways that are compared."""
    each = [*range(FIRST_LOOK, questions + 1, every)]
    return [
        Way("once, at the end", [questions], lambda _: None),
        Way("after every question, as if once", each, lambda _: None),
        Way("after every question, confidence sequence", each, lambda _: Looking()),
        Way(
            f"{LOOKS} declared looks",
            [questions * look // LOOKS for look in range(1, LOOKS + 1)],
            lambda at: Looking(round(LOOKS * at / questions), LOOKS),
        ),
    ]


def ends(runs: FloatArray, span: float, way: Way) -> tuple[FloatArray, FloatArray]:
    """Return after how many questions each run ended, and whether it was decided."""
    end, decided = np.full(len(runs), float(way.at[-1])), np.zeros(len(runs))
    left = np.arange(len(runs))
    for at in way.at:
        units = Units(runs[left, :at], np.ones((len(left), at)))
        found = Rule.of(units, np.full(len(left), span), way.looking(at)).p() <= 0.05
        end[left[found]], decided[left[found]] = at, 1.0
        left = left[~found]
    return end, decided


def width(way: Way) -> float:
    """Return how wide the interval at the last look is, in widths of one look's."""
    questions = way.at[-1]
    runs = np.random.default_rng(0).normal(size=(1, questions))
    units, span = Units(runs, np.ones_like(runs)), np.array([np.inf])
    found, one = (Rule.of(units, span, each).interval(0.95) for each in (way.looking(questions), None))
    return float((found[1] - found[0])[0] / (one[1] - one[0])[0])


def main(times: int) -> None:
    """Print the table."""
    print("| differences | looked at | false verdicts, wanted 5 % | width | power | questions |")
    print("|---|---|---|---|---|---|")
    for number, (shape, (draw, span)) in enumerate(SHAPES.items()):
        for way in ways():
            none, some = (draw(np.random.default_rng(number), (times, QUESTIONS), mean) for mean in (0.0, EFFECT))
            (_, false), (end, found) = ends(none, span, way), ends(some, span, way)
            print(
                f"| {shape} | {way.name} | {false.mean():.1%} | {width(way):.2f} | {found.mean():.0%} |"
                f" {end.mean():.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
