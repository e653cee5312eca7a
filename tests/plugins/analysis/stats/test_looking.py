from __future__ import annotations

import numpy as np
import pytest
from looking import SHAPES, ends, ways, width

from keval_analysis.stats.looking import FIRST_LOOK, Looking, critical, crossing
from keval_analysis.stats.paired import Differences, Rule, paired_effects


def test_bounds_of_obrien_and_fleming_are_those_of_the_published_table() -> None:
    # Jennison and Turnbull (2000), table 2.3
    published = {
        0.05: {1: 1.960, 2: 1.977, 3: 2.004, 4: 2.024, 5: 2.040, 6: 2.053, 7: 2.063, 8: 2.072, 9: 2.080, 10: 2.087},
        0.01: {1: 2.576, 2: 2.580, 3: 2.595, 4: 2.609, 5: 2.621},
    }
    tails = {15: 2.110, 20: 2.126}

    found = {alpha: {looks: round(critical(looks, alpha), 3) for looks in row} for alpha, row in published.items()}

    assert published == found
    assert tails == {looks: round(critical(looks, 0.05), 3) for looks in tails}
    assert 1.0 == pytest.approx(crossing(3, 0.0))


@pytest.mark.parametrize("looking", [Looking(), Looking(1, 2), Looking(3, 4), Looking(4, 4)])
@pytest.mark.parametrize("clusters", [None, 14])
def test_interval_and_p_agree_at_every_look(looking: Looking, clusters: int | None) -> None:
    rng = np.random.default_rng(1)
    of = None if clusters is None else np.arange(40) % clusters
    row = Differences(rng.exponential(size=40) - 0.4, of, 50.0)
    rule = Rule.on([row] * 2, looking)

    low, high = rule.interval(0.95)

    assert 0.05 == pytest.approx(float(rule.p(low)[0]), rel=2e-3)
    assert 0.05 == pytest.approx(float(rule.p(high)[0]), rel=2e-3)
    ordinary = Rule.on([row]).interval(0.95)
    assert low[0] < ordinary[0][0]
    assert ordinary[1][0] < high[0]


def test_no_interval_before_the_first_look() -> None:
    few = paired_effects([Differences([0.5, 1.0, 0.2] * 3)], looking=Looking())[0]
    enough = paired_effects([Differences([0.5, 1.0, 0.2] * 4)], looking=Looking())[0]
    too_early = paired_effects([Differences([0.5, 1.0, 0.2] * 4)], looking=Looking(1, 20))[0]

    assert (few.n, few.low, few.high, few.p) == (9, None, None, None)
    assert enough.low is not None
    assert (too_early.low, too_early.high) == (None, None)
    assert 10 == FIRST_LOOK


@pytest.mark.slow
def test_looking_finds_no_more_differences_than_it_may() -> None:
    once, naive, sequence, looks = ways(100, every=3)
    false = {}
    for shape, (draw, span) in SHAPES.items():
        runs = draw(np.random.default_rng(3), (400, 100), 0.0)
        false[shape] = [ends(runs, span, way)[1].mean() for way in (naive, sequence, looks)]

    assert all(found[0] > 0.14 for found in false.values()), false
    assert all(found[1] < 0.06 for found in false.values()), false
    assert all(found[2] < 0.085 for found in false.values()), false
    assert (1.0, 1.0) == (width(once), width(naive))
    assert 1.5 < width(sequence) < 1.75
    assert 1.0 < width(looks) < 1.06
