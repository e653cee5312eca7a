"""Shuffled results: the results of one sample's calls, given to the calls of the next one (`results: shuffled`).

The source of a trial is the trial of the same agent, condition and repetition that begins before it, by the plan's
order; where that made no call of a tool, the one before it. A call waits for the source's call of the same number and
not for its end, and both reach their servers at once. So what a trial gets depends on no timing, and memory holds the
results of the trials under way, and of the last that called each tool.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import attrs

from keval.plan.plan import Plan, sample_order
from keval.records.interventions import ShuffledResults
from keval.records.trial import TrialKey


@attrs.define(eq=False)
class TrialResults:
    """The results of one trial: those of its first attempt, and of later ones where these make more calls.

    `source` is what its source gives, if it has one.
    """

    source: TrialResults | None = None
    results: dict[str, list[Mapping[str, Any]]] = attrs.field(factory=dict, init=False)
    ended: bool = attrs.field(default=False, init=False)
    changed: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)

    def attempt(self, server: str) -> ShuffledResults:
        """Return what the calls of one attempt to one server use."""
        return _AttemptResults(self, server)

    def add(self, key: str, result: Mapping[str, Any]) -> None:
        """Add a result, and wake those who wait for it."""
        self.results.setdefault(key, []).append(result)
        self._tell()

    def end(self) -> None:
        """Note that no result follows. For tools that it did not call, the trial gives those of sources before it."""
        self.ended = True
        while self.source is not None and self.source.ended:
            self.results = {**self.source.results, **self.results}
            self.source = self.source.source
        self._tell()

    def _tell(self) -> None:
        # Who waits holds this event; who comes later waits for the next result with a new one.
        self.changed.set()
        self.changed = asyncio.Event()


@attrs.define(eq=False)
class _AttemptResults:
    _trial: TrialResults
    _server: str
    _given: Counter[str] = attrs.field(factory=Counter, init=False)

    def give(self, key: str, result: Mapping[str, Any]) -> None:
        key = f"{self._server} {key}"
        self._given[key] += 1
        if self._given[key] > len(self._trial.results.get(key, ())):
            self._trial.add(key, result)

    async def take(self, key: str, number: int) -> Mapping[str, Any] | None:
        key, source = f"{self._server} {key}", self._trial.source
        while source is not None:
            results: Sequence[Mapping[str, Any]] = source.results.get(key, ())
            if number <= len(results):
                return results[number - 1]
            if not source.ended:
                await source.changed.wait()
            elif results:
                return results[(number - 1) % len(results)]
            else:
                source = source.source
        return None


@attrs.define(eq=False)
class ResultShuffling:
    """The trials that give results to others: those of `conditions`.

    `before` returns for a repetition which sample comes before each, by their ids.
    """

    conditions: Collection[str]
    before: Callable[[int], Mapping[str, str]]
    _begun: dict[tuple[str, str, int, str], TrialResults] = attrs.field(factory=dict, init=False)

    @classmethod
    def of(cls, plan: Plan) -> ResultShuffling:
        """Return those of a plan."""

        @lru_cache(maxsize=2)  # of a large dataset, trials of at most two repetitions are under way
        def before(repetition: int) -> Mapping[str, str]:
            order = sample_order(plan.samples.ids, plan.evaluation.execution.seed, repetition)
            return dict(zip(order[1:], order, strict=False))

        return cls(plan.shuffled, before)

    @contextmanager
    def trial(self, key: TrialKey) -> Iterator[TrialResults | None]:
        """Enter a trial for all its attempts; yields `None` if its condition shuffles no results.

        A trial has no source if none began in this process, as the first one of a repetition.
        """
        if key.condition not in self.conditions:
            yield None
            return
        arm = (key.agent, key.condition, key.repetition)
        source = self.before(key.repetition).get(key.sample, "")
        # Each trial is the source of one other, so it need not be found again.
        own = TrialResults(self._begun.pop((*arm, source), None))
        self._begun[*arm, key.sample] = own
        try:
            yield own
        finally:
            own.end()
