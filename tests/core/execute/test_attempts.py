"""One attempt at foreign work, whatever that does; and how long keval waits before the next."""

from __future__ import annotations

import asyncio
import random

import pytest
from hypothesis import given, strategies as st

from keval.config.evaluation import Retry
from keval.errors import ModelError, TrialError
from keval.execute.attempts import AttemptOutcome, RetryPolicy, run_attempt

RETRY = Retry(max_attempts=9, initial_backoff_seconds=1, backoff_multiplier=2, max_backoff_seconds=10)
LATE = TrialError("too late", kind="timeout", retryable=True)


async def slept(seconds: float) -> None:
    raise AssertionError("nothing here waits")


def retry_policy(seed: int) -> RetryPolicy:
    return RetryPolicy(RETRY, slept, random.Random(seed))


def attempted(work: object, seconds: float | None = 5) -> AttemptOutcome[object]:
    return asyncio.run(run_attempt(work, seconds=seconds, late=LATE))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("error", "kind", "retryable"),
    [
        (ModelError("busy", status=429), "rate_limit", True),
        (TrialError("told", kind="told"), "told", False),
        (ZeroDivisionError("oh"), "ZeroDivisionError", False),
        (SystemExit(3), "SystemExit", False),
        (asyncio.CancelledError(), "cancelled", True),
        (ExceptionGroup("two", [ValueError("odd"), ModelError("down", status=503)]), "http_503", True),
        (ExceptionGroup("one", [ExceptionGroup("one", [ValueError("odd")])]), "ValueError", False),
        (ExceptionGroup("two", [ValueError("odd"), KeyError("odd")]), "ExceptionGroup", False),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_whatever_the_work_raises_is_returned(error: BaseException, kind: str, retryable: bool) -> None:
    async def work() -> str:
        raise error

    found = attempted(work)

    assert found.failure
    assert (kind, retryable) == (found.failure.kind, found.retryable)


def test_the_end_of_the_run_is_passed_on() -> None:
    async def work() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise RuntimeError("made something else of it") from None

    async def ended() -> None:
        task = asyncio.create_task(run_attempt(work, seconds=5, late=LATE))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(ended())


def test_work_that_is_ended_before_it_began_does_not_warn() -> None:
    async def work() -> None:
        raise AssertionError

    async def ended() -> None:
        task = asyncio.create_task(run_attempt(work, seconds=5, late=LATE))
        await asyncio.sleep(0)  # the task has begun, and the one that it made for the work has not
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(ended())


@given(st.integers(1, 8), st.integers())
def test_the_wait_is_within_the_growing_bound(failed: int, seed: int) -> None:
    wait = retry_policy(seed).backoff(failed)

    assert 0 <= wait <= min(10, 2 ** (failed - 1))


@given(st.floats(0, 100), st.integers())
def test_a_wait_that_was_asked_for_is_honoured_up_to_the_maximum(asked: float, seed: int) -> None:
    wait = retry_policy(seed).backoff(1, asked)

    assert min(asked, 10) <= wait <= 10
