"""Looking at a run while it runs: who looks touches `.watched`, and the run tells in `live.json` what happens just now.

It does so about once a second. While nobody looks it listens to no live events, so that none are made, and writes
nothing. Neither file is a part of the run; it removes both when it ends.
"""

from __future__ import annotations

import asyncio
import os
import time
import warnings
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Literal

import attrs
import orjson

from keval.errors import PluginWarning, RunError
from keval.files import open_added, read_kept
from keval.records.manifest import WorkerEntry
from keval.records.scores import ScoreLine
from keval.records.trial import Trial, TrialKey
from keval.redaction import Redactor
from keval.seams.hooks import Hooks, hookimpl
from keval.seams.live_events import EventKind, LiveEvent
from keval.store.lock import fetch_run
from keval.store.run import Run
from keval.store.serialization import dump, from_plain
from keval_analysis.failure_tally import FailureTally

LIVE_FILE = "live.json"
WATCHED_FILE = ".watched"


@attrs.frozen
class TrialInFlight:
    """A trial that has begun, at the Unix time `since`, and is not on disk yet.

    `attempt` counts from 1, `doing` is the kind of the latest live event, of the Unix time `at`, and `tool` the tool
    that is being called; all are `None` as long as nothing was heard of the trial.
    """

    trial: str
    agent: str
    condition: str
    sample: str
    repetition: int
    since: float
    attempt: int | None = None
    doing: EventKind | None = None
    at: float | None = None
    tool: str | None = None


@attrs.frozen
class ErrorCount:
    """Something that went wrong so many times: its kind, and what it said the first time."""

    kind: str
    count: int
    message: str = ""


@attrs.frozen
class EndpointPace:
    """How many requests at once the endpoint of a model is given (`None`: any number), and why it does not answer."""

    model: str
    at_once: int | None = None
    down: bool = False
    trouble: str | None = None


@attrs.frozen
class LiveState:
    """What a running run is doing, at the Unix time `at`.

    Its stage is `trials` until the last one has ended, then `scoring`. Since it was begun or resumed, `finished` trials
    were written, `failed` ones among them, and `scored` ones have their scores. `retries` are attempts that failed and
    `refusals` model requests that were refused, of the trials in flight, since somebody has been looking: those of
    finished trials are in trials.jsonl. `paces` are of the endpoints that were given fewer requests, or went down, and
    `workers` those of an executor that runs trials elsewhere.
    """

    at: float
    stage: Literal["trials", "scoring"]
    finished: int
    failed: int
    scored: int
    in_flight: tuple[TrialInFlight, ...] = ()
    retries: tuple[ErrorCount, ...] = ()
    refusals: tuple[ErrorCount, ...] = ()
    paces: tuple[EndpointPace, ...] = ()
    workers: tuple[WorkerEntry, ...] = ()


def refusal_kind(status: int | None) -> str:
    """Name the kind of a model request that was refused, by its HTTP status."""
    return "no response" if status is None else f"HTTP {status}"


def error_counts(*tallies: FailureTally) -> tuple[ErrorCount, ...]:
    """Return what tallies counted, the most frequent first."""
    counts: Counter[str] = Counter()
    messages: dict[str, str] = {}
    for tally in tallies:
        counts.update(tally.counts)
        # The first message of each kind stays.
        messages = {**tally.messages, **messages}
    return tuple(ErrorCount(kind, count, messages.get(kind, "")) for kind, count in counts.most_common())


def remove_live_files(folder: Path) -> None:
    """Remove both files. Raises OSError."""
    for name in (LIVE_FILE, WATCHED_FILE):
        (folder / name).unlink(missing_ok=True)


def write_live(folder: Path, state: LiveState) -> None:
    """Write what a run is doing, whole or not at all; that survives no power cut, and need not. Raises OSError."""
    unfinished = folder / f".{LIVE_FILE}.unfinished"
    # A link that somebody left in its place would lead the write elsewhere: it is removed, and `x` makes a new file.
    unfinished.unlink(missing_ok=True)
    with unfinished.open("xb") as file:
        file.write(dump(state))
    unfinished.replace(folder / LIVE_FILE)


_EVERY = 1.0
"""Seconds between two looks at whether anybody looks, and between two tellings."""
_LOOKING = 6.0
"""Seconds for which one is taken to look after touching `.watched`, which is done about every 2 s."""


def watch(run: Run) -> bool:
    """Say that somebody looks at a run just now, and return whether it is running; call this about every two seconds.

    Where the run's directory cannot be written to, the run does not hear of it. One that is mirrored is brought here.
    """
    with suppress(OSError):  # a viewer that may only read shows what is in the run's own files
        os.close(open_added(run.path / WATCHED_FILE))
        os.utime(run.path / WATCHED_FILE)
    fetch_run(run.path)
    if run.is_locked:
        return True
    # No process runs it any more, and the files would go on telling what it did last.
    with suppress(OSError):
        remove_live_files(run.path)  # it has just ended, or was killed
    return False


def read_live(run: Run) -> LiveState | None:
    """Return what a run is doing; `None` if it tells nothing: it does not run, or nobody looks. Raises RunError."""
    path = run.path / LIVE_FILE
    try:
        told = orjson.loads(read_kept(path))
    except FileNotFoundError:
        return None
    except (OSError, orjson.JSONDecodeError) as error:
        raise RunError(f"{path} cannot be read: {error}") from error
    return from_plain(LiveState, told, path)


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
                # Only when the task has ended, as it could write the file once more.
                with suppress(OSError):  # a folder that is gone, or that nothing can be written to any more
                    remove_live_files(folder)

    def begins(self, key: TrialKey) -> None:
        """Note that a trial begins."""
        self._in_flight[key.id] = _InFlight(key)

    def ends(self) -> None:
        """Do nothing: the files went when the block of `publishing` ended."""

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
                # In a thread, as a file system over a network may block the loop of the run.
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
            # No reason to end the run, which only loses its viewers.
            warnings.warn(f"{told}; viewers cannot show the live state of the run", PluginWarning, stacklevel=1)
        finally:
            self._listen(on=False)

    def _is_watched(self, folder: Path) -> bool:
        """Return whether anybody has touched `.watched` lately. Its time may be that of another machine's clock."""
        try:
            mark = (folder / WATCHED_FILE).stat().st_mtime_ns
        except FileNotFoundError:
            return False
        if mark != self._mark:
            # When the mark moved is taken by this machine's clock.
            self._mark, self._marked = mark, time.monotonic()
        return time.monotonic() - self._marked < _LOOKING

    def _listen(self, *, on: bool) -> None:
        listeners = self._hooks.listeners if self._hooks else []
        # A bound method equals itself, though each access makes a new object.
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
