"""Holm's adjustment, held against statsmodels."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st
from statsmodels.stats.multitest import multipletests

from keval_analysis.stats.paired import holm


@pytest.mark.slow
@settings(max_examples=30)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_adjusted_values_are_those_of_statsmodels(p: list[float]) -> None:
    assert pytest.approx(list(multipletests(p, method="holm")[1]), rel=1e-9, abs=1e-12) == holm(p)


def test_unknown_values_stay_unknown_and_do_not_count() -> None:
    assert [None, 0.02, 0.3, None] == holm([None, 0.01, 0.3, None])
    assert [] == holm([])
