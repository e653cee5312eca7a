"""Attempts: one unit of work with a time limit, repeated if that can help, with every failure kept as data.

Agents, judges and metrics run foreign code that may raise, hang, be cancelled or cancel itself. This module alone
distinguishes these cases."""

from __future__ import annotations

import asyncio
import inspect
import random
import time
import traceback
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

import attrs

from keval.config.evaluation import Retry
from keval.errors import ModelError, Stage, TrialError
from keval.records.trial import Failure


@attrs.define(eq=False)
class Stopwatch:
    """Tells an attempt's time in seconds, and stops its time limit while the attempt is `paused`.

    What pauses it may run in another task, such as that of a proxy that the agent sends its requests to.
    """

    _waited: float = 0.0
    _waiting: int = 0
    _since: float = 0.0
    _limit: asyncio.Timeout | None = None
    _left: float | None = None

    def now(self) -> float:
        """Return a time of which only differences mean something; it stands still while the attempt is paused."""
        moment = self._since if self._waiting else time.perf_counter()
        return moment - self._waited

    @contextmanager
    def limiting(self, limit: asyncio.Timeout) -> Iterator[None]:
        """Stop this time limit, too, while the attempt is paused."""
        self._limit = limit
        try:
            yield
        finally:
            self._limit = None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the time; several pauses at once count as one."""
        if not self._waiting:
            self._since = time.perf_counter()
            self._hold()
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._waited += time.perf_counter() - self._since
                self._release()

    def expire(self) -> None:
        """End the attempt now, as if its time were over."""
        # `_left` is dropped, so that the end of a pause gives no time back.
        limit = self._limit
        self._left = None
        if limit is not None and not limit.expired():
            limit.reschedule(asyncio.get_running_loop().time())

    def _hold(self) -> None:
        limit = self._limit
        self._left = None
        if limit is not None and not limit.expired() and (when := limit.when()) is not None:
            self._left = when - asyncio.get_running_loop().time()
            limit.reschedule(None)

    def _release(self) -> None:
        limit = self._limit
        # asyncio raises RuntimeError where a limit that has expired is rescheduled.
        if limit is not None and not limit.expired() and self._left is not None:
            limit.reschedule(asyncio.get_running_loop().time() + self._left)


T = TypeVar("T")

Sleep = Callable[[float], Awaitable[None]]


@attrs.frozen
class AttemptOutcome(Generic[T]):
    """The outcome of one attempt: a value, or the failure and the error behind it."""

    value: T | None = None
    failure: Failure | None = None
    error: BaseException | None = None

    @property
    def retryable(self) -> bool:
        """Whether another attempt may succeed."""
        return isinstance(self.error, TrialError) and self.error.retryable

    @classmethod
    def failed(cls, error: BaseException) -> AttemptOutcome[T]:
        """Return the outcome of an attempt that raised `error`."""
        return cls(None, failure_of(error), error)


@attrs.frozen
class RetryPolicy:
    """How often something is attempted and how long keval waits in between; `sleep` and `rng` are parameters."""

    retry: Retry
    sleep: Sleep
    rng: random.Random

    def exhausted(self, attempts: int) -> bool:
        """Return whether no further attempt is allowed after this many."""
        return attempts >= self.retry.max_attempts

    async def wait(self, attempts: int, error: BaseException | None) -> None:
        """Wait after the `attempts`-th failed attempt, for as long as `error` asks or the backoff says."""
        asked = error.retry_after if isinstance(error, TrialError) else None
        await self.sleep(self.backoff(attempts, asked))

    def backoff(self, attempts: int, retry_after: float | None = None, *, share: float = 1.0) -> float:
        """Return the seconds to wait after the `attempts`-th failed attempt (from 1).

        Uniform between 0 and a bound, which grows by `backoff_multiplier` and stops at `max_backoff_seconds`; `share`
        is the part of it to take. A wait that the other side asked for (`Retry-After`) is honoured up to the same
        maximum.
        """
        retry = self.retry
        growing = retry.initial_backoff_seconds * retry.backoff_multiplier ** (attempts - 1)
        bound = share * min(retry.max_backoff_seconds, growing)
        asked = min(retry_after or 0.0, retry.max_backoff_seconds)
        # full jitter: requests that were refused together do not come back together
        return max(asked, self.rng.uniform(0.0, bound))


async def run_attempt(
    work: Callable[[], Awaitable[T]], *, seconds: float | None, late: TrialError, stopwatch: Stopwatch | None = None
) -> AttemptOutcome[T]:
    """Run `work` once, within `seconds`, and return its outcome; nothing that it raises is raised.

    `late` is the error after a timeout, and `stopwatch` stops the time while the attempt waits. Foreign work may
    swallow a cancellation, cancel itself, or leave its task marked as cancelled; none of that affects the caller.

    Raises:
        CancelledError: the caller's own task is being cancelled.
    """
    # made here, to be asked in the end whether it has expired
    limit = asyncio.timeout(seconds)

    async def limited() -> T:
        async with limit:
            with (stopwatch or Stopwatch()).limiting(limit):
                return await work()

    try:
        value = await _in_own_task(limited())
        # Work that swallowed the cancellation by the time limit is late, too.
        return AttemptOutcome.failed(late) if limit.expired() else AttemptOutcome(value)
    # Foreign code may call sys.exit(). A KeyboardInterrupt is for the whole command.
    except (Exception, SystemExit, asyncio.CancelledError) as error:
        # First: work may have made any other error of the cancellation of its run.
        if being_cancelled():
            raise asyncio.CancelledError from error
        if limit.expired():
            return AttemptOutcome.failed(late)
        if isinstance(error, asyncio.CancelledError):
            return AttemptOutcome.failed(TrialError("it was cancelled from inside", kind="cancelled", retryable=True))
        return AttemptOutcome.failed(_explained(error))


def failure_of(error: BaseException, stage: Stage | None = None) -> Failure:
    """Return an error as data. An error that keval does not explain keeps its traceback. `stage` overrides its own."""
    if isinstance(error, TrialError):
        kind, said = error.kind, str(error) or error.kind
        if isinstance(error, ModelError) and not error.retryable:
            from keval.execute.models.denials import content_refused  # few requests are refused

            if (reason := content_refused(error)) is not None:
                kind, said = reason.kind, f"{said}; {reason.remedy}"
        return Failure(stage or error.stage, kind, said)
    kind = type(error).__name__
    return Failure(stage or "agent", kind, str(error) or kind, "".join(traceback.format_exception(error)))


def being_cancelled() -> bool:
    """Return whether the running task is being cancelled, as by Ctrl-C, even if what it awaited ignored that."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _explained(error: BaseException) -> BaseException:
    """Find the explained error inside a group, or the only one: task groups wrap what their tasks raise."""
    if isinstance(error, BaseExceptionGroup):
        found = [_explained(inner) for inner in error.exceptions]
        return next((inner for inner in found if isinstance(inner, TrialError)), found[0] if len(found) == 1 else error)
    return error


async def _in_own_task(work: Awaitable[T]) -> T:
    """Await foreign work in a task of its own, which it may leave marked as cancelled.

    asyncio's TaskGroup does so when a child fails (until Python 3.12). Raises CancelledError when the caller's task is
    being cancelled, and otherwise what the work raises.
    """

    async def held() -> tuple[T | None, SystemExit | None]:
        try:
            return await work, None
        except SystemExit as error:  # raised out of a task, it would end the event loop
            return None, error

    try:
        result, exit_ = await asyncio.create_task(held())
    except BaseException as error:
        if being_cancelled():
            raise asyncio.CancelledError from error
        raise
    finally:
        if inspect.iscoroutine(work):
            work.close()  # work that was ended before it began would warn that it was never awaited
    # Work that swallowed the cancellation must not make its worker go on.
    if being_cancelled():
        raise asyncio.CancelledError
    if exit_ is not None:
        raise exit_
    return result  # type: ignore[return-value]  # it is there when there is no exit
