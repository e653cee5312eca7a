"""Waiting between attempts: exponential backoff with full jitter, never less than the other side asked for."""

from __future__ import annotations

import random

from keval.config.evaluation import Retry

__all__ = ["backoff"]


def backoff(retry: Retry, failed: int, retry_after: float | None, rng: random.Random) -> float:
    """Seconds to wait after the `failed`-th failed attempt (from 1).

    Uniform between 0 and the bound, which grows by `backoff_multiplier` and stops at `max_backoff_seconds`. A wait that
    the other side asked for (`Retry-After`) is honoured up to the same maximum.
    """
    bound = min(retry.max_backoff_seconds, retry.initial_backoff_seconds * retry.backoff_multiplier ** (failed - 1))
    asked = min(retry_after or 0.0, retry.max_backoff_seconds)
    return max(asked, rng.uniform(0.0, bound))
