"""The BCa interval, held against SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from keval.analysis.stats import intervals as bootstrap
from keval.analysis.stats.intervals import bca_interval


@pytest.mark.parametrize("n", [15, 120])
def test_the_interval_is_scipys(n: int) -> None:
    values = np.random.default_rng(n).exponential(size=n) - 0.8

    found = bca_interval(values, seed=7, resamples=999)

    rng = np.random.default_rng(7)
    theirs = stats.bootstrap((values,), np.mean, n_resamples=999, method="BCa", rng=rng).confidence_interval
    assert pytest.approx(tuple(theirs), rel=1e-9) == found


def test_resampling_in_parts_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(1).normal(size=40)
    at_once = bca_interval(values, seed=3)

    monkeypatch.setattr(bootstrap, "_AT_ONCE", 1_000)

    assert at_once == bca_interval(values, seed=3)


def test_clusters_are_resampled_whole() -> None:
    values = np.random.default_rng(4).normal(size=40)

    once = bca_interval(values, seed=5)
    often = bca_interval(np.repeat(values, 3), clusters=np.repeat(np.arange(40), 3), seed=5)

    assert once == pytest.approx(often)


def test_many_samples_need_no_resampling(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(2).exponential(size=600)
    expanded = bca_interval(values, seed=1)

    monkeypatch.setattr(bootstrap, "_MANY", 600)

    assert expanded is not None
    assert pytest.approx(bca_interval(values, seed=1, resamples=20_000), abs=0.05 * (expanded[1] - expanded[0])) == (
        expanded
    )


def test_equal_values_have_no_interval() -> None:
    assert bca_interval(np.full(20, 0.3), seed=1) is None
    assert bca_interval(np.ones(1), seed=1) is None
