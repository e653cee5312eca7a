"""How often 95 % intervals hold the truth, and how often an effect is seen where there is none, on planted data.

Prints the tables of `docs/statistics.md`: for 15, 30 and 100 samples, how many per cent of the intervals cover, of the
plain t interval and of keval's; how much wider keval's are on average; and how often p is at most 0.05, in per cent,
where both arms are alike. `interval_coverage.py 1000` draws each 1,000 times, as for the documentation.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from typing import TypeAlias

import attrs
import numpy as np
from scipy import special

from keval.analysis.stats.intervals import (
    FloatArray,
    IntArray,
    difference_interval,
    estimate,
    mean_interval,
    t_quantile,
)
from keval.analysis.stats.paired import p_value

SIZES = (15, 30, 100)
SEED = 20261122
FOR_THE_TRUTH = 400_000

Draw: TypeAlias = Callable[[np.random.Generator, FloatArray], FloatArray]
"""From random numbers and a standard normal score for each sample, which says how easy it is, to values."""


@attrs.frozen
class Scenario:
    """One kind of data: an arm, and the other one that it is compared with."""

    name: str
    arm: Draw
    against: Draw
    high: float
    low: float = 0.0
    in_clusters: bool = False


def normal(mean: float, sd: float, low: float = -math.inf, high: float = math.inf, *, step: float = 0.0) -> Draw:
    """Scores that scatter normally, half of it by question; cut off at the ends of the scale, rounded to steps."""

    def draw(rng: np.random.Generator, ease: FloatArray) -> FloatArray:
        values = mean + sd * (ease + rng.normal(size=len(ease))) / math.sqrt(2)
        values = np.clip(values, low, high)
        return np.round(values / step) * step if step else values

    return draw


def passes(probability: float, trials: int = 1) -> Draw:
    """Means of 0/1 over repetitions; half of what decides is the question, an intra-class correlation of about 0.3."""
    threshold = math.sqrt(2) * special.ndtri(probability)

    def draw(rng: np.random.Generator, ease: FloatArray) -> FloatArray:
        return np.asarray(np.mean(ease + rng.normal(size=(trials, len(ease))) < threshold, axis=0))

    return draw


def skewed(scale: float, spread: float) -> Draw:
    """Log-normal values, as of seconds or tokens; half of the spread is by question."""

    def draw(rng: np.random.Generator, ease: FloatArray) -> FloatArray:
        return np.asarray(scale * np.exp(spread * (ease + rng.normal(size=len(ease))) / math.sqrt(2)))

    return draw


def beta(a: float, b: float) -> Draw:
    """Skewed values between 0 and 1."""
    return lambda rng, ease: rng.beta(a, b, len(ease))


def nothing(rng: np.random.Generator, ease: FloatArray) -> FloatArray:
    return np.zeros(len(ease))


def scenarios() -> Iterator[Scenario]:
    inf = math.inf
    yield Scenario("normal", normal(0.5, 0.15), normal(0.5, 0.15), inf, -inf)
    for probability in (0.5, 0.8, 0.9, 0.95, 0.98):
        yield Scenario(f"0/1, {probability:.0%} pass", passes(probability), passes(probability), 1)
    yield Scenario("0/1, 95 % against 60 %", passes(0.95), passes(0.6), 1)
    yield Scenario("0/1, 5 % against never", passes(0.05), nothing, 1)
    for probability in (0.8, 0.95):
        yield Scenario(f"0/1, {probability:.0%} pass, 3 repetitions", passes(probability, 3), passes(probability, 3), 1)
    yield Scenario("1 to 5, mean 3.8", normal(4, 1.2, 1, 5, step=1), normal(4, 1.2, 1, 5, step=1), 5, 1)
    yield Scenario("1 to 5, nearly all 5", normal(5.4, 0.8, 1, 5, step=1), normal(5.4, 0.8, 1, 5, step=1), 5, 1)
    yield Scenario("1 to 5, 4.7 against 3.8", normal(5.1, 0.8, 1, 5, step=1), normal(4, 1.2, 1, 5, step=1), 5, 1)
    yield Scenario("ceiling, half at 1", normal(1, 0.25, 0, 1), normal(1, 0.25, 0, 1), 1)
    yield Scenario("ceiling, nine in ten at 1", normal(1.32, 0.25, 0, 1), normal(1.32, 0.25, 0, 1), 1)
    yield Scenario("ceiling, 0.95 against 0.8", normal(1.15, 0.25, 0, 1), normal(0.85, 0.25, 0, 1), 1)
    yield Scenario("skewed, 0 to 1", beta(0.5, 3), beta(0.5, 3), 1)
    yield Scenario("skewed, 0 to 1, against 0", beta(0.5, 3), nothing, 1)
    yield Scenario("skewed, without end", skewed(1, 0.8), skewed(1, 0.8), inf)
    yield Scenario("skewed, without end, half as much again", skewed(1.5, 0.8), skewed(1, 0.8), inf)
    yield Scenario("clusters: normal", normal(0.5, 0.15), normal(0.5, 0.15), inf, -inf, in_clusters=True)
    for probability in (0.8, 0.95):
        name = f"clusters: 0/1, {probability:.0%} pass"
        yield Scenario(name, passes(probability), passes(probability), 1, in_clusters=True)
    likert = normal(4, 1.2, 1, 5, step=1), normal(4, 1.2, 1, 5, step=1)
    yield Scenario("clusters: 1 to 5, mean 3.8", *likert, 5, 1, in_clusters=True)
    yield Scenario("clusters: ceiling, half at 1", normal(1, 0.25, 0, 1), normal(1, 0.25, 0, 1), 1, in_clusters=True)
    yield Scenario("clusters: skewed, without end", skewed(1, 0.8), skewed(1, 0.8), inf, in_clusters=True)


def clustered(rng: np.random.Generator, n: int) -> tuple[IntArray, FloatArray]:
    """Clusters of 1 to 10 samples, whose ease is correlated with 0.5."""
    sizes = rng.choice([1, 2, 3, 5, 10], p=[0.4, 0.2, 0.15, 0.15, 0.1], size=n)
    clusters = np.repeat(np.arange(n), sizes)[:n]
    return clusters, (rng.normal(size=n)[clusters] + rng.normal(size=n)) / math.sqrt(2)


@attrs.define
class Tally:
    """What was found over the repetitions of one scenario and size."""

    drawn: int = 0
    by_t: int = 0
    covered: int = 0
    width: float = 0.0
    t_width: float = 0.0
    seen: int = 0

    def add(self, values: FloatArray, clusters: IntArray | None, truth: float, ends: tuple[float, float]) -> None:
        found = estimate(values, clusters)
        if found.mean is None or found.stderr is None or found.df is None:
            return
        reach = t_quantile(found.df, 0.95) * found.stderr
        self.drawn += 1
        self.by_t += abs(found.mean - truth) <= reach + 1e-9
        self.covered += ends[0] - 1e-9 <= truth <= ends[1] + 1e-9
        self.width += ends[1] - ends[0]
        self.t_width += 2 * reach


def tally(scenario: Scenario, n: int, times: int) -> tuple[Tally, Tally]:
    """Return what was found of the arm's mean and of its difference to the other arm."""
    rng = np.random.default_rng([SEED, n, *scenario.name.encode()])
    ease = rng.normal(size=FOR_THE_TRUTH)
    arm, against = scenario.arm(rng, ease), scenario.against(rng, ease)
    alike = scenario.arm is not scenario.against and abs(arm.mean() - against.mean()) < 0.01 * (arm.std() or 1)
    mean, difference = float(arm.mean()), 0.0 if alike else float(arm.mean() - against.mean())
    means, differences = Tally(), Tally()
    for _ in range(times):
        clusters: IntArray | None = None
        ease = rng.normal(size=n)
        if scenario.in_clusters:
            clusters, ease = clustered(rng, n)
        arm, against = scenario.arm(rng, ease), scenario.against(rng, ease)
        interval = mean_interval(arm, clusters=clusters, low=scenario.low, high=scenario.high)
        if interval is not None:
            means.add(arm, clusters, mean, (interval.low, interval.high))
        span = scenario.high - scenario.low
        interval = difference_interval(arm - against, clusters=clusters, span=span)
        if interval is not None:
            differences.add(arm - against, clusters, difference, (interval.low, interval.high))
            differences.seen += alike and seen(arm, against, clusters, scenario)
    if not alike:
        differences.seen = -1
    return means, differences


def seen(arm: FloatArray, against: FloatArray, clusters: IntArray | None, scenario: Scenario) -> bool:
    tested = p_value(arm, against, clusters=clusters, low=scenario.low, high=scenario.high)
    return tested is not None and tested[0] <= 0.05


def row(name: str, found: list[Tally], *, effects: bool) -> str:
    def cells(shown: Callable[[Tally], str]) -> str:
        return " ".join(shown(one) for one in found)

    parts = [
        name,
        cells(lambda one: f"{100 * one.by_t / one.drawn:.1f}"),
        cells(lambda one: f"{100 * one.covered / one.drawn:.1f}"),
        cells(lambda one: f"{one.width / one.t_width:.2f}" if one.t_width else "-"),
    ]
    if effects:
        parts.append(cells(lambda one: f"{100 * one.seen / one.drawn:.1f}" if one.seen >= 0 else "") or "")
    return f"| {' | '.join(part.strip() for part in parts)} |"


def main() -> None:
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    rows: dict[bool, list[str]] = {False: [], True: []}
    lowest, most = 1.0, 0.0
    for scenario in scenarios():
        found = [tally(scenario, n, times) for n in SIZES]
        for effects, tallies in enumerate(zip(*found, strict=True)):
            rows[bool(effects)].append(row(scenario.name, list(tallies), effects=bool(effects)))
            lowest = min(lowest, *(one.covered / one.drawn for one in tallies))
            most = max(most, *(one.seen / one.drawn for one in tallies))
    print(f"means of one arm, n = {SIZES}, {times} times each")
    print("| data | t covers, % | keval covers, % | times as wide |\n|---|---|---|---|")
    print("\n".join(rows[False]))
    print("\npaired differences")
    print("| data | t covers, % | keval covers, % | times as wide | seen where there is none |\n|---|---|---|---|---|")
    print("\n".join(rows[True]))
    print(f"\nlowest coverage {lowest:.1%}; wanted: at least 93 %")
    print(f"effects seen where there are none: at most {most:.1%}; wanted: at most 6 %")


if __name__ == "__main__":
    main()
