"""Donors: the results of one sample's calls, for the calls of the next sample (`results: shuffled`).

The donor of a trial is the trial of the same agent, condition and repetition whose sample stands before it. It begins
before that, so a call waits for the donor's call of the same number and not for its end; both reach their servers at
once. So what a trial gets depends on no timing, and memory holds the results of the trials under way alone.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import attrs

from keval.interventions import OtherResults
from keval.plan.plan import Plan
from keval.records import TrialKey

__all__ = ["Donors", "TrialResults"]


@attrs.define(eq=False)
class _Donation:
    """The results of one trial: those of its first attempt, and of later ones where these make more calls."""

    results: dict[str, list[Mapping[str, Any]]] = attrs.field(factory=dict)
    ended: bool = False
    changed: asyncio.Event = attrs.field(factory=asyncio.Event)

    def tell(self) -> None:
        """Wake those who wait for a result."""
        self.changed.set()
        self.changed = asyncio.Event()


@attrs.frozen(eq=False)
class TrialResults:
    """What a trial gives to another one, and takes from its donor, if it has one; see `OtherResults`."""

    own: _Donation = attrs.field(factory=_Donation)
    donor: _Donation | None = None

    def attempt(self, server: str) -> OtherResults:
        """Return what the calls of one attempt to one server use."""
        return _AttemptResults(self, server)


@attrs.define(eq=False)
class _AttemptResults:
    _trial: TrialResults
    _server: str
    _given: Counter[str] = attrs.field(factory=Counter, init=False)

    def give(self, key: str, result: Mapping[str, Any]) -> None:
        results = self._trial.own.results.setdefault(f"{self._server} {key}", [])
        self._given[key] += 1
        if self._given[key] > len(results):
            results.append(result)
            self._trial.own.tell()

    async def take(self, key: str, number: int) -> Mapping[str, Any] | None:
        donor = self._trial.donor
        while donor is not None:
            results = donor.results.get(f"{self._server} {key}", [])
            if number <= len(results):
                return results[number - 1]
            if donor.ended:
                return results[(number - 1) % len(results)] if results else None
            await donor.changed.wait()
        return None


@attrs.define(eq=False, slots=False)
class Donors:
    """The trials of a plan that give results to others."""

    _plan: Plan
    _given: dict[tuple[str, str, int, str], _Donation] = attrs.field(factory=dict, init=False)

    @contextmanager
    def trial(self, key: TrialKey) -> Iterator[TrialResults | None]:
        """Enter a trial for all its attempts; yields `None` if its condition shuffles no results.

        Without a donor that began in this process, as for the first sample, results are scrambled.
        """
        if key.condition not in self._shuffling:
            yield None
            return
        arm = (key.agent, key.condition, key.repetition)
        own = self._given[*arm, key.sample] = _Donation()
        try:
            yield TrialResults(own, self._given.pop((*arm, self._before.get(key.sample, "")), None))
        finally:
            own.ended = True
            own.tell()

    @cached_property
    def _shuffling(self) -> frozenset[str]:
        contexts = {
            label
            for label, item in self._plan.contexts.items()
            if any(each.results == "shuffled" for each in item.interventions)
        }
        return frozenset(arm.label for arm in self._plan.arms if contexts.intersection(arm.contexts))

    @cached_property
    def _before(self) -> Mapping[str, str]:
        """The sample before each one; those of a run are in the order of its dataset."""
        ids: Sequence[str] = self._plan.samples.ids
        return dict(zip(ids[1:], ids[:-1], strict=True))
