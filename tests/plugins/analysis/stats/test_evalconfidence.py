"""The same figures by evalconfidence, a library for the statistics of evaluations."""

from __future__ import annotations

import numpy as np
import pytest
from evalconfidence import ItemResult, compare, standard_error

from keval_analysis.stats.intervals import estimate
from keval_analysis.stats.units import FloatArray, Units, moments, t_quantile


def items(model: str, values: FloatArray) -> list[ItemResult]:
    """One score for each sample; five samples after each other share a source."""
    return [
        ItemResult(item_id=f"q{number}", model_id=model, score=float(value), cluster_id=f"c{number // 5}")
        for number, value in enumerate(values)
    ]


def test_paired_effects_and_clustered_errors_are_the_same() -> None:
    rng = np.random.default_rng(8)
    arm, against = rng.random(40), rng.random(40)

    found = moments(Units.of([(arm - against, None)]))
    reach = float((t_quantile(found.df, 0.95) * found.stderr)[0])
    clustered = estimate(arm, np.arange(40) // 5)

    theirs = compare(items("a", arm), items("b", against))
    mean = float(found.mean[0])
    assert pytest.approx((theirs.diff, *theirs.ci_diff), rel=1e-9) == (mean, mean - reach, mean + reach)
    assert pytest.approx(standard_error(items("a", arm)).se_clustered, rel=1e-9) == clustered.stderr
