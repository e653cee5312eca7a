"""Waiting between attempts stays within its bounds and honours what the other side asks for."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from keval.config.evaluation import Retry
from keval.run.retry import backoff

RETRY = Retry(max_attempts=9, initial_backoff_seconds=1, backoff_multiplier=2, max_backoff_seconds=10)


@given(st.integers(1, 8), st.integers())
def test_the_wait_is_within_the_growing_bound(failed: int, seed: int) -> None:
    wait = backoff(RETRY, failed, None, random.Random(seed))

    assert 0 <= wait <= min(10, 2 ** (failed - 1))


@given(st.floats(0, 100), st.integers())
def test_a_wait_that_was_asked_for_is_honoured_up_to_the_maximum(asked: float, seed: int) -> None:
    wait = backoff(RETRY, 1, asked, random.Random(seed))

    assert min(asked, 10) <= wait <= 10
