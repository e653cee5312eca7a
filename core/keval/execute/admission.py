"""Admission: which trials may begin, until the run is stopped, too many failed, or its budget is used up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import attrs

from keval.errors import KevalError
from keval.records.trial import Trial, TrialKey
from keval.seams.use_meter import RunBudget


class StoppedError(KevalError):
    """A run was asked to stop, and did; what was finished is on disk."""


@attrs.define(eq=False)
class Stop:
    """Asks a run to stop. `in_flight` says whether trials are being run, which may finish then."""

    in_flight: bool = attrs.field(default=False, init=False)
    _asked: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)

    def ask(self) -> None:
        """Ask the run to stop; call it in the run's event loop."""
        self._asked.set()

    @property
    def asked(self) -> bool:
        """Whether the run was asked to stop."""
        return self._asked.is_set()

    async def run(self, trials: Coroutine[Any, Any, None], grace: float) -> None:
        """Await what runs the trials; when asked to stop, only `grace` seconds longer.

        Raises:
            StoppedError: the run was asked to stop.
        """
        running = asyncio.create_task(trials)
        asked = asyncio.create_task(self._asked.wait())
        self.in_flight = True
        try:
            await asyncio.wait({running, asked}, return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                await asyncio.wait({running}, timeout=grace)
        finally:
            self.in_flight = False
            asked.cancel()
            running.cancel()
            # Trials must have ended before what they use is closed.
            await asyncio.wait({running, asked})
        # An error that ended the trials says more than that the run was asked to stop.
        if not running.cancelled():
            running.result()
        if self._asked.is_set():
            raise StoppedError("the run was stopped")


@attrs.define(eq=False)
class Admission:
    """Hands out the keys of trials that may begin, and tells `begins` of each.

    `max_failures` counts trials that fail from now on. `ended` says whether no further trial is needed, and
    `behind` whether none may begin until more are scored.
    """

    keys: Iterator[TrialKey]
    stop: Stop
    run_budget: RunBudget
    max_failures: int | None = None
    begins: Callable[[TrialKey], object] | None = None
    ended: Callable[[], bool] = lambda: False
    behind: Callable[[], bool] = lambda: False
    _failed: int = attrs.field(default=0, init=False)
    _finished: int = attrs.field(default=0, init=False)
    _waits: bool = attrs.field(default=False, init=False)
    _next: TrialKey | None = attrs.field(default=None, init=False)

    @property
    def waits(self) -> bool:
        """Whether trials that could not begin may do so now.

        What was in flight cost less than was reserved for it, or was scored.
        """
        return self._waits and self._admits

    def admitted(self) -> Iterator[TrialKey]:
        """Yield keys as long as their trials may begin."""
        self._waits = False
        while (key := self._peek()) is not None and self._admits:
            self._next = None
            # Reserved before it begins, so that trials that begin together do not all count on the same rest.
            self.run_budget.begin_trial(key.agent, key.condition)
            if self.begins is not None:
                self.begins(key)
            yield key
        self._waits = key is not None

    def finished(self, trial: Trial) -> None:
        """Note a trial that was begun."""
        self._finished += 1
        self._failed += trial.failure is not None
        self.run_budget.end_trial(trial)

    def close(self) -> str:
        """Note whether any trial was left out, and say why if too many failed; else return an empty text."""
        if self.stop.asked or self.ended() or (key := self._peek()) is None:
            return ""
        if self._too_many_failed:
            return (
                f"{self._failed} of {self._finished} trials failed, more than the {self.max_failures} of max_failures"
            )
        self.run_budget.leave_out_trials(key.agent, key.condition)
        return ""

    def _peek(self) -> TrialKey | None:
        """Return the trial that is next in the order of the plan, which no other one overtakes."""
        if self._next is None:
            self._next = next(self.keys, None)
        return self._next

    @property
    def _admits(self) -> bool:
        halted = self.stop.asked or self._too_many_failed or self.ended() or self.behind()
        key = self._peek()
        return not halted and key is not None and self.run_budget.admits_trial(key.agent, key.condition)

    @property
    def _too_many_failed(self) -> bool:
        return self.max_failures is not None and self._failed > self.max_failures
