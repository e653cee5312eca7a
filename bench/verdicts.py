"""What verdicts promise, on planted data: how often the truth is covered, and an effect seen, where it is and is not.

Prints the tables of `docs/statistics.md` and `docs/ci.md`. keval's rule stands beside the paired t-test, the BCa
bootstrap and Wilcoxon's test, and beside `evalstats` where that is installed:

    uv run --with evalstats python bench/verdicts.py 1000

draws each cell 1,000 times (`evalstats` 100 times, as it draws itself), as for the documentation.
"""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeAlias

import attrs
import numpy as np
from measure import part
from scipy import special, stats

from keval_analysis.stats.intervals import Values, mean_intervals
from keval_analysis.stats.paired import Differences, Rule
from keval_analysis.stats.units import FloatArray, IntArray, Units, moments, t_quantile

SIZES = (5, 10, 20, 30, 50, 100)
SEED = 20261124
RESAMPLES = 1_000

Draw: TypeAlias = Callable[[np.random.Generator, tuple[int, int], float], FloatArray]
"""From random numbers, a shape (draws, questions) and how large the effect is, 0 or 1, to differences."""


@attrs.frozen
class Cell:
    """One kind of data. `truth` is the mean difference where there is an effect; without one it is 0."""

    name: str
    draw: Draw
    truth: float
    span: float = math.inf
    in_clusters: bool = False


def passes(rng: np.random.Generator, shape: tuple[int, int], share: float, trials: int, ease: FloatArray) -> FloatArray:
    """Means of 0/1 over repetitions; half of what decides is the question."""
    threshold = math.sqrt(2) * special.ndtri(share)
    noise = rng.normal(size=(trials, *shape))
    return np.asarray(np.mean(ease + noise < threshold, axis=0))


def binary(before: float, after: float, trials: int) -> Draw:
    def draw(rng: np.random.Generator, shape: tuple[int, int], effect: float) -> FloatArray:
        ease = rng.normal(size=shape)
        share = after if effect else before
        return passes(rng, shape, share, trials, ease) - passes(rng, shape, before, trials, ease)

    return draw


def judged(rng: np.random.Generator, shape: tuple[int, int], effect: float) -> FloatArray:
    """Levels of 1 to 5 near the ceiling; with an effect, half a level is lost before rounding."""
    ease = rng.normal(size=shape)

    def levels(lost: float) -> FloatArray:
        return np.clip(np.round(5.2 - lost + 0.8 * (ease + rng.normal(size=shape)) / math.sqrt(2)), 1, 5)

    return levels(0.5 * effect) - levels(0.0)


def some(share: float, low: float, high: float) -> Draw:
    """This share of the questions changes by so much: all for the worse, or each either way."""

    def draw(rng: np.random.Generator, shape: tuple[int, int], effect: float) -> FloatArray:
        sizes = rng.uniform(low, high, shape)
        sign = -1.0 if effect else rng.choice([-1.0, 1.0], shape)
        return np.where(rng.random(shape) < share, sign * sizes, 0.0)

    return draw


def outlier(rng: np.random.Generator, shape: tuple[int, int], effect: float) -> FloatArray:
    """One question of twenty loses as much as the others gain together."""
    return np.where(rng.random(shape) < 0.05, -0.95, 0.05) - 0.2 * effect


def times(rng: np.random.Generator, shape: tuple[int, int], effect: float) -> FloatArray:
    """Log-normal seconds, half of whose spread is by question."""
    ease = rng.normal(size=shape)
    arm, against = (np.exp(0.8 * (ease + rng.normal(size=shape)) / math.sqrt(2)) for _ in range(2))
    return (1.4 if effect else 1.0) * arm - against


def clustered(rng: np.random.Generator, shape: tuple[int, int], effect: float) -> FloatArray:
    """Normal differences, correlated with 0.5 within a source."""
    shared = rng.normal(size=shape)[:, clusters(shape[1])]
    return (shared + rng.normal(size=shape)) / math.sqrt(2) + 0.5 * effect


def clusters(n: int) -> IntArray:
    """Sources of 1, 2 and 3 questions by turns."""
    return np.repeat(np.arange(n), np.resize([1, 2, 3], n))[:n]


def cells() -> Iterator[Cell]:
    yield Cell("normal", lambda rng, shape, effect: rng.normal(0.5 * effect, 1, shape), 0.5)
    yield Cell("0/1, 85 % pass; 60 %", binary(0.85, 0.6, 1), -0.25, 1)
    yield Cell("0/1, 3 repetitions; 65 %", binary(0.85, 0.65, 3), -0.2, 1)
    yield Cell("1 to 5 near the ceiling; half a level less", judged, math.nan, 4)
    yield Cell("30 % of questions lose 0.25 to 0.75", some(0.3, 0.25, 0.75), -0.15, 1)
    yield Cell("half of the questions lose a third", some(0.5, 1 / 3, 1 / 3), -1 / 6, 1)
    yield Cell("all questions lose 0.1", some(1.0, 0.1, 0.1), -0.1, 1)
    yield Cell("skewed times; 40 % more", times, math.nan)
    yield Cell("in sources of 1 to 3; half an sd", clustered, 0.5, in_clusters=True)
    yield Cell("one question of twenty turns the sign", outlier, -0.2, 1)


NOTHING = Cell("rows that are there already", lambda rng, shape, effect: np.zeros(shape), 0.0, 1.0)


@attrs.frozen
class Found:
    """What a method found in each draw: the ends of the 95 % interval, and p; NaN where it has none."""

    low: FloatArray
    high: FloatArray
    p: FloatArray


def by_keval(rows: FloatArray, cell: Cell) -> Found:
    of = clusters(rows.shape[1]) if cell.in_clusters else None
    rule = Rule.on([Differences(row, of, cell.span) for row in rows])
    return Found(*rule.interval(0.95), rule.p())


def by_t(rows: FloatArray, cell: Cell) -> Found:
    of = clusters(rows.shape[1]) if cell.in_clusters else None
    found = moments(Units.of((row, of) for row in rows))
    reach = t_quantile(found.df, 0.95) * found.stderr
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.abs(found.mean) / found.stderr
    p = np.where(found.stderr > 0, 2 * special.stdtr(found.df, -t), np.where(found.mean == 0, 1.0, 0.0))
    return Found(found.mean - reach, found.mean + reach, p)


def by_bca(rows: FloatArray, cell: Cell) -> Found:
    """The BCa bootstrap of samples, whatever their source. Source: Efron, JASA 82 (1987), 171-185."""
    n = rows.shape[1]
    rng = np.random.default_rng(SEED)
    counts = rng.multinomial(n, np.full(n, 1 / n), RESAMPLES)
    means = np.sort(rows @ counts.T / n, axis=1)
    mean = rows.mean(axis=1, keepdims=True)
    below = ((means < mean - 1e-12).mean(axis=1) + (means <= mean + 1e-12).mean(axis=1)) / 2
    bias = special.ndtri(np.clip(below, 1e-3, 1 - 1e-3))
    away = rows - mean
    with np.errstate(divide="ignore", invalid="ignore"):
        skew = np.nan_to_num((away**3).sum(axis=1) / (6 * (away**2).sum(axis=1) ** 1.5))
    ends = []
    for tail in special.ndtri([0.025, 0.975]):
        shifted = bias + tail
        share = special.ndtr(bias + shifted / (1 - skew * shifted))
        ends.append(np.take_along_axis(means, np.round(share * (RESAMPLES - 1)).astype(int)[:, None], axis=1)[:, 0])
    excludes = (ends[0] > 0) | (ends[1] < 0)
    return Found(ends[0], ends[1], np.where(excludes, 0.0, 1.0))


def by_wilcoxon(rows: FloatArray, cell: Cell) -> Found:
    unknown = np.full(len(rows), np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        p = np.array([stats.wilcoxon(row).pvalue if row.any() else 1.0 for row in rows])
    return Found(unknown, unknown, p)


def by_evalstats(rows: FloatArray, cell: Cell) -> Found:
    compare: Any = import_module("evalstats").pairwise_differences
    found = []
    for number, row in enumerate(rows):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # It is given the two arms; those of 0/1 scores are 0 and 1.
            pair = np.stack([0.5 + row / 2, 0.5 - row / 2])
            if cell.span == 1 and np.isin(row, (-1.0, 0.0, 1.0)).all():
                pair = np.stack([row >= 0, row <= 0]).astype(float)
            each = compare(pair, 0, 1, n_bootstrap=2_000, rng=np.random.default_rng(number))
        found.append((each.ci_low, each.ci_high, each.p_value))
    low, high, p = np.array(found, np.float64).T
    return Found(low, high, p)


METHODS: dict[str, Callable[[FloatArray, Cell], Found]] = {
    "keval": by_keval,
    "t": by_t,
    "BCa": by_bca,
    "Wilcoxon": by_wilcoxon,
}
if find_spec("evalstats"):
    METHODS["evalstats"] = by_evalstats


@attrs.frozen
class Figures:
    """Shares, in per cent: intervals that cover, effects seen where there is none, and where there is one.

    `width` is that of the mean interval where there is an effect.
    """

    coverage: float
    false: float
    power: float
    width: float


def figures(cell: Cell, n: int, draws: int, method: Callable[[FloatArray, Cell], Found]) -> Figures:
    rng = np.random.default_rng([SEED, n, *cell.name.encode()])
    null, real = (cell.draw(rng, (draws, n), effect) for effect in (0.0, 1.0))
    truth = cell.truth
    if math.isnan(truth):
        truth = float(cell.draw(rng, (400, 1_000), 1.0).mean())
    at_null, at_real = method(null, cell), method(real, cell)
    covered = [
        np.mean((found.low - 1e-9 <= mean) & (mean <= found.high + 1e-9))
        for found, mean in ((at_null, 0.0), (at_real, truth))
    ]
    return Figures(
        math.nan if np.isnan(at_real.low).all() else 50 * float(covered[0] + covered[1]),
        100 * float(np.mean(at_null.p <= 0.05)),
        100 * float(np.mean(at_real.p <= 0.05)),
        float(np.nanmean(at_real.high - at_real.low)) if not np.isnan(at_real.low).all() else math.nan,
    )


def table(draws: int, methods: dict[str, Callable[[FloatArray, Cell], Found]]) -> None:
    """Print coverage, false effects, power and width, a row for each cell and method."""
    sizes = ", ".join(map(str, SIZES))
    print(f"| data | method | n = {sizes}: covers, % | seen where there is none, % | seen, % | as wide as t |")
    print("|---|---|---|---|---|---|")
    worst: dict[str, tuple[float, float]] = {}
    for cell in cells():
        t = [figures(cell, n, draws, by_t) for n in SIZES]
        for name, method in methods.items():
            count = min(draws, 100) if name == "evalstats" else draws
            found = [figures(cell, n, count, method) for n in SIZES]
            wide = [one.width / other.width if other.width else math.nan for one, other in zip(found, t, strict=True)]
            columns = [
                told([one.coverage for one in found], 0),
                told([one.false for one in found], 1),
                told([one.power for one in found], 0),
                told(wide, 2),
            ]
            print(f"| {cell.name if name == 'keval' else ''} | {name} | {' | '.join(columns)} |", flush=True)
            if "turns the sign" not in cell.name:
                least, most = worst.get(name, (100.0, 0.0))
                covers = [one.coverage for one in found if not math.isnan(one.coverage)]
                worst[name] = min(least, *covers, 100.0), max(most, *(one.false for one in found))
    for name, (least, most) in worst.items():
        coverage = "" if name == "Wilcoxon" else f"covers at least {least:.1f} %, and "
        print(f"{name}: {coverage}sees an effect where there is none in at most {most:.1f} %")
    print("wanted of keval: covers at least 92 %, sees an effect where there is none in at most 6 %, but for chance")


def told(values: Sequence[float], places: int) -> str:
    return " ".join("–" if math.isnan(value) else f"{value:.{places}f}" for value in values)


def means(draws: int) -> None:
    """Print how often intervals of one arm's mean cover, and how wide they are."""
    print("| data | n = 10, 20, 30, 100: keval covers, % | t covers, % | as wide as t |\n|---|---|---|---|")
    for name, share in (("0/1, 50 % pass", 0.5), ("0/1, 80 %", 0.8), ("0/1, 95 %", 0.95), ("0/1, 98 %", 0.98)):
        columns: list[list[float]] = [[], [], []]
        for n in (10, 20, 30, 100):
            rng = np.random.default_rng([SEED, n])
            rows = (rng.random((draws, n)) < share).astype(float)
            found = [each for each in mean_intervals([Values(row, None, 0.0, 1.0) for row in rows]) if each is not None]
            low, high = np.array([(each.low, each.high) for each in found]).T
            t = by_t(rows, NOTHING)
            columns[0].append(100 * float(np.mean((low <= share) & (share <= high))))
            columns[1].append(100 * float(np.mean((t.low <= share) & (share <= t.high))))
            columns[2].append(float(np.mean(high - low) / np.mean(t.high - t.low)))
        print(f"| {name} | {told(columns[0], 1)} | {told(columns[1], 1)} | {told(columns[2], 2)} |")


def gates(draws: int) -> None:
    """Print what gates on a regression find in pull requests against one baseline run, as `drops_of` decides."""
    print("| drop | repetitions | family | n = 10, 20, 30, 50: fail | undecided |\n|---|---|---|---|---|")
    for drop in (0.0, 0.05, 0.1, 0.2):
        for trials in (1, 3):
            for family in (1, 14):
                fails, doubts = [], []
                for n in (10, 20, 30, 50):
                    rng = np.random.default_rng([SEED, n, trials])
                    rows = binary(0.85, 0.85 - drop, trials)(rng, (draws, n), 1.0)
                    fail, held = decided(rows, family)
                    fails.append(100 * float(np.mean(fail)))
                    doubts.append(100 * float(np.mean(~fail & ~held)))
                print(f"| {100 * drop:.0f} points | {trials} | {family} | {told(fails, 0)} | {told(doubts, 0)} |")
    for n in (20, 50):
        rng = np.random.default_rng([SEED, n])
        shape = (draws // 4, n)
        shared, apart = [], []
        ease = rng.normal(size=shape)
        baseline = passes(rng, shape, 0.85, 1, ease)
        for _ in range(10):
            request = passes(rng, shape, 0.85, 1, ease)
            shared.append(decided(request - baseline, 1)[0])
            apart.append(decided(request - passes(rng, shape, 0.85, 1, ease), 1)[0])
        for name, alarms in (("one baseline run", shared), ("a baseline run each", apart)):
            count = np.sum(alarms, axis=0)
            print(
                f"ten pull requests without a change, n = {n}, {name}: {100 * np.mean(count) / 10:.1f} % alarm;"
                f" at least three of ten in {100 * np.mean(count >= 3):.1f} %"
            )
    seen = np.random.default_rng(SEED).binomial(20, 0.85, 100_000) / 20
    print(f"mean >= 0.8 of a true 0.85 at n = 20 fails in {100 * np.mean(seen < 0.8 - 1e-9):.0f} of 100 runs")


def decided(rows: FloatArray, family: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return whether a gate fails, and whether it holds; the metric with the drop is the first of its family."""
    rule = Rule.on([Differences(row, None, 1.0) for row in rows])
    low, high = rule.interval(0.9)
    one_sided = np.where(rule.moments.mean < 0, rule.p() / 2, 1 - rule.p() / 2)
    return (high < 0) & (one_sided * family <= 0.05), low >= 0


def speed() -> None:
    """Print how long 10,000 effects take, and how many times as long as their t intervals."""
    rng = np.random.default_rng(SEED)
    rows = rng.choice([-1.0, -0.5, 0.0, 0.5, 1.0], (10_000, 30), p=[0.05, 0.1, 0.5, 0.2, 0.15])
    took = []
    for method in (by_t, by_keval):
        began = time.perf_counter()
        method(rows, NOTHING)
        took.append(time.perf_counter() - began)
    print(f"10,000 effects of 30 questions: {took[1]:.1f} s, {took[1] / took[0]:.0f} times as long as t intervals")


def main() -> None:
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else part(100, least=10)
    table(draws, METHODS)
    means(draws)
    gates(draws)
    speed()


if __name__ == "__main__":
    main()
