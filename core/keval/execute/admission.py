"""Admission: which trials may begin, until the run is asked to stop, too many failed, or its budget is used up."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs

from keval.execute.meter import Meter
from keval.execute.stopping import Stop
from keval.records import Trial, TrialKey

__all__ = ["Admission"]


@attrs.define(eq=False)
class Admission:
    """Hands out the keys of trials that may begin, and tells `begins` of each.

    `max_failures` counts trials that fail from now on.
    """

    keys: Iterator[TrialKey]
    stop: Stop
    meter: Meter
    max_failures: int | None = None
    begins: Callable[[TrialKey], object] | None = None
    _failed: int = attrs.field(default=0, init=False)
    _finished: int = attrs.field(default=0, init=False)
    _waits: bool = attrs.field(default=False, init=False)

    @property
    def waits(self) -> bool:
        """Whether trials that could not begin may do so now: what was in flight cost less than was reserved for it."""
        return self._waits and self._admits

    def admitted(self) -> Iterator[TrialKey]:
        """Yield keys as long as their trials may begin."""
        self._waits = False
        while self._admits:
            key = next(self.keys, None)
            if key is None:
                return
            self.meter.begin_trial()
            if self.begins is not None:
                self.begins(key)
            yield key
        self._waits = True

    def finished(self, trial: Trial) -> None:
        """Note a trial that was begun."""
        self._finished += 1
        self._failed += trial.failure is not None
        self.meter.end_trial(trial)

    def close(self) -> str:
        """Note whether any trial was left out, and say why if too many failed; else return an empty text."""
        if self.stop.asked or next(self.keys, None) is None:
            return ""
        if self._too_many_failed:
            return (
                f"{self._failed} of {self._finished} trials failed, more than the {self.max_failures} of max_failures"
            )
        self.meter.leave_out_trials()
        return ""

    @property
    def _admits(self) -> bool:
        return not (self.stop.asked or self._too_many_failed) and self.meter.admits_trial()

    @property
    def _too_many_failed(self) -> bool:
        return self.max_failures is not None and self._failed > self.max_failures
