"""Student's t distribution, held against SciPy."""

from __future__ import annotations

import pytest
from scipy import special

from keval_analysis.stats.intervals import reach_of_t

DEGREES = [1, 1.0001, 1.3, 2, 2.5, 3, 4.999, 5, 9.7, 14, 29, 99, 1e3, 9_999, 1e5]


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9, 0.95, 0.99, 0.999])
def test_the_reach_of_an_interval_is_scipys(level: float) -> None:
    found = [reach_of_t(df, level) for df in DEGREES]

    assert pytest.approx([special.stdtrit(df, (1 + level) / 2) for df in DEGREES], rel=1e-10) == found


def test_of_a_million_questions_the_reach_is_nearly_that_of_a_normal_distribution() -> None:
    assert pytest.approx(special.ndtri(0.975), rel=1e-5) == reach_of_t(1e6, 0.95)
    assert pytest.approx(special.stdtrit(1e6, 0.975), rel=1e-9) == reach_of_t(1e6, 0.95)
