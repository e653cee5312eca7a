"""The same figures by evalconfidence, a library for the statistics of evaluations."""

from __future__ import annotations

import numpy as np
import pytest
from evalconfidence import ItemResult, compare, standard_error

from keval.analysis.stats.intervals import FloatArray, estimate
from keval.analysis.stats.paired import paired


def items(model: str, values: FloatArray) -> list[ItemResult]:
    """One score for each sample; five samples after each other share a source."""
    return [
        ItemResult(item_id=f"q{number}", model_id=model, score=float(value), cluster_id=f"c{number // 5}")
        for number, value in enumerate(values)
    ]


def test_paired_effects_and_clustered_errors_are_the_same() -> None:
    rng = np.random.default_rng(8)
    arm, against = rng.random(40), rng.random(40)

    found = paired(arm, against, low=0, high=1, seed=1)
    clustered = estimate(arm, np.arange(40) // 5)

    theirs = compare(items("a", arm), items("b", against))
    assert pytest.approx((theirs.diff, *theirs.ci_diff), rel=1e-9) == (found.difference, found.t_low, found.t_high)
    assert pytest.approx(standard_error(items("a", arm)).se_clustered, rel=1e-9) == clustered.stderr
