"""Bounds of effects when scores were lost, held against every way in which they might have turned out."""

from __future__ import annotations

import math
from itertools import product
from statistics import mean

import numpy as np
import pytest

from keval_analysis.stats.effects import Observed, manski_bounds


def observed(scores: list[list[float | None]]) -> Observed:
    known = [[value for value in given if value is not None] for given in scores]
    return Observed(
        np.array([sum(given) for given in known], dtype=float),
        np.array([len(given) for given in known]),
        np.array([given.count(None) for given in scores]),
    )


ARM: list[list[float | None]] = [[0.5, None], [1.0, 1.0], [None], []]
AGAINST: list[list[float | None]] = [[0.25, 0.75], [None, 0.5], [0.5], [1.0]]


def test_the_bounds_are_the_least_and_the_greatest_of_all_that_might_have_been() -> None:
    def effects() -> list[float]:
        found = []
        for ends in product([0.0, 1.0], repeat=3):
            left = iter(ends)
            arm, against = (
                [[next(left) if value is None else value for value in given] for given in side]
                for side in (ARM[:3], AGAINST[:3])
            )
            found.append(mean(mean(ours) - mean(theirs) for ours, theirs in zip(arm, against, strict=True)))
        return found

    found = manski_bounds(observed(ARM), observed(AGAINST), low=0, high=1)

    assert pytest.approx((min(effects()), max(effects()))) == found


def test_a_scale_without_an_end_bounds_nothing() -> None:
    assert manski_bounds(observed(ARM), observed(AGAINST), low=0, high=math.inf) is None
    assert manski_bounds(observed([[]]), observed([[0.5]]), low=0, high=1) is None
