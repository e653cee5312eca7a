"""Watching: a running run tells those who look at it what it is doing, in `live.json`, about once a second.

While nobody looks it listens to no live events, so that none are made, and writes nothing.
"""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import attrs

from keval.records.manifest import WorkerEntry
from keval.records.scores import ScoreLine
from keval.records.trial import FailureTally, Trial, TrialKey
from keval.redaction import Redactor
from keval.seams.hooks import Hooks, hookimpl
from keval.seams.live_events import LiveEvent
from keval_analysis.live_state import (
    LIVE_FILE,
    WATCHED_FILE,
    EndpointPace,
    LiveState,
    TrialInFlight,
    error_counts,
    refusal_kind,
    remove_live_files,
    write_live,
)

_EVERY = 1.0
"""Seconds between two looks at whether anybody looks, and between two tellings."""
_LOOKING = 6.0
"""Seconds for which one is taken to look after touching `.watched`, which is done about every 2 s."""


@attrs.define(eq=False)
class _InFlight:
    """What is known of a trial in flight, and what went wrong in it since it is heard of."""

    key: TrialKey
    since: float = attrs.field(factory=time.time)
    latest: LiveEvent | None = None
    calls: list[str] = attrs.field(factory=list)
    retries: FailureTally = attrs.field(factory=FailureTally)
    refusals: FailureTally = attrs.field(factory=FailureTally)


@attrs.define(eq=False)
class LiveStateWriter:
    """What a run is doing, for those who look at it."""

    _hooks: Hooks | None = attrs.field(default=None, init=False)
    _redact: Redactor = attrs.field(factory=Redactor, init=False)
    _in_flight: dict[str, _InFlight] = attrs.field(factory=dict, init=False)
    _paces: dict[str, EndpointPace] = attrs.field(factory=dict, init=False)
    _workers: dict[str, WorkerEntry] = attrs.field(factory=dict, init=False)
    _finished: int = attrs.field(default=0, init=False)
    _failed: int = attrs.field(default=0, init=False)
    _scored: int = attrs.field(default=0, init=False)
    _ended: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    _mark: int | None = attrs.field(default=None, init=False)
    _marked: float = attrs.field(default=0.0, init=False)

    @asynccontextmanager
    async def publishing(self, folder: Path, hooks: Hooks, redact: Redactor) -> AsyncIterator[None]:
        """Tell in a run's folder while the block runs, and leave nothing there at its end."""
        self._hooks, self._redact = hooks, redact
        task = asyncio.create_task(self._tell(folder))
        try:
            yield
        finally:
            self._ended.set()
            try:
                await task
            finally:
                with suppress(OSError):  # a folder that is gone, or that nothing can be written to any more
                    remove_live_files(folder)

    def begins(self, key: TrialKey) -> None:
        """Note that a trial begins."""
        self._in_flight[key.id] = _InFlight(key)

    @hookimpl
    def keval_trial_finished(self, trial: Trial) -> None:
        self._in_flight.pop(trial.id, None)
        self._finished += 1
        self._failed += trial.failure is not None

    @hookimpl
    def keval_trial_scored(self, trial: Trial, scores: Sequence[ScoreLine], late: bool) -> None:
        self._scored += not late

    @hookimpl
    def keval_endpoint_changed(self, model: str, at_once: int | None, down: bool, trouble: str | None) -> None:
        self._paces[model] = EndpointPace(model, at_once, down, trouble and self._redact.text(trouble))

    @hookimpl
    def keval_worker_changed(self, worker: WorkerEntry) -> None:
        self._workers[worker.name] = worker

    def state(self) -> LiveState:
        """Return what the run is doing just now."""
        trials = self._in_flight.values()
        is_over = not trials and bool(self._finished or self._scored)
        return LiveState(
            at=time.time(),
            stage="scoring" if is_over else "trials",
            finished=self._finished,
            failed=self._failed,
            scored=self._scored,
            in_flight=tuple(map(self._told, trials)),
            retries=error_counts(*(trial.retries for trial in trials)),
            refusals=error_counts(*(trial.refusals for trial in trials)),
            paces=tuple(self._paces.values()),
            workers=tuple(self._workers.values()),
        )

    async def _tell(self, folder: Path) -> None:
        was_watched = False
        try:
            while not self._ended.is_set():
                is_watched = await asyncio.to_thread(self._is_watched, folder)
                self._listen(on=is_watched)
                if is_watched:
                    await asyncio.to_thread(write_live, folder, self.state())
                elif was_watched:
                    await asyncio.to_thread(remove_live_files, folder)
                was_watched = is_watched
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._ended.wait(), _EVERY)
        except OSError as error:
            told = f"{folder / LIVE_FILE} cannot be written: {error.strerror or error}"
            warnings.warn(f"{told}; viewers cannot show the live state of the run", RuntimeWarning, stacklevel=1)
        finally:
            self._listen(on=False)

    def _is_watched(self, folder: Path) -> bool:
        """Return whether anybody has touched `.watched` lately. Its time may be that of another machine's clock."""
        try:
            mark = (folder / WATCHED_FILE).stat().st_mtime_ns
        except FileNotFoundError:
            return False
        if mark != self._mark:
            self._mark, self._marked = mark, time.monotonic()
        return time.monotonic() - self._marked < _LOOKING

    def _listen(self, *, on: bool) -> None:
        listeners = self._hooks.listeners if self._hooks else []
        if on and self._hear not in listeners:
            listeners.append(self._hear)
        elif not on and self._hear in listeners:
            listeners.remove(self._hear)
            # What trials do from now on is not heard, so what was heard of them says nothing later.
            self._in_flight = {name: _InFlight(one.key, one.since) for name, one in self._in_flight.items()}

    def _hear(self, event: LiveEvent) -> None:
        trial = self._in_flight.get(event.trial)
        if trial is None:
            return
        kind, data = event.kind, event.data
        if kind == "tool_called":
            trial.calls.append(data["name"])
        elif kind == "tool_returned" and data["name"] in trial.calls:
            trial.calls.remove(data["name"])
        elif kind == "model_refused":
            trial.refusals.add(refusal_kind(data["status"]), self._redact.text(data["message"]))
        elif kind == "trial_finished":
            trial.calls.clear()
            if data["failure"] is not None:
                trial.retries.add(f"{data['stage']}: {data['failure']}", self._redact.text(str(data["message"])))
        trial.latest = event

    def _told(self, trial: _InFlight) -> TrialInFlight:
        key, latest = trial.key, trial.latest
        told = TrialInFlight(key.id, key.agent, key.condition, key.sample, key.repetition, trial.since)
        if latest is None:
            return told
        tool = self._redact.text(trial.calls[-1]) if trial.calls else None
        return attrs.evolve(told, attempt=latest.attempt, doing=latest.kind, at=latest.at, tool=tool)
