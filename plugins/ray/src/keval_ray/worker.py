"""The actor that is a worker: brings the plan up in its process, does the tasks it is given, and keeps the results."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import sys
import time
import traceback
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TextIO, TypeAlias

import attrs
import ray

from keval import Sample
from keval.errors import ConfigError, OutageError, PluginWarning, PreflightError
from keval.execute.limits import RunLimits
from keval.records.trial import TrialKey
from keval.seams.distribution import CrewOrder, PackedScores, PackedTrial, WantedScore
from keval.seams.live_events import LiveEvent
from keval_ray.limiter import RemoteLimits
from keval_remote.crew.worker import CrewWorker, open_worker


@attrs.frozen
class RunTask:
    """A trial to run."""

    key: TrialKey
    sample: Sample


@attrs.frozen
class ScoreTask:
    """Scores to make of a trial, given as its line, perhaps against another one."""

    line: bytes
    sample: Sample
    wanted: Sequence[WantedScore]
    against: bytes | None = None


Task: TypeAlias = RunTask | ScoreTask


@attrs.frozen
class TaskError:
    """Why a task has no result: an endpoint was given up, or a defect. Secrets are replaced in the message."""

    kind: Literal["outage", "defect"]
    message: str


@attrs.frozen
class Usage:
    """What the process of a worker has used: seconds of CPU, also of programs that ended, and its largest memory."""

    cpu_seconds: float
    memory_bytes: int


@attrs.frozen
class WorkerWarning:
    """A warning in the process of a worker, by a file; `is_plain` tells one of keval's own or a plugin's."""

    text: str
    file: str
    is_plain: bool


@attrs.frozen
class Batch:
    """What a worker has done since it was asked before; results are by the number of their task."""

    results: Mapping[int, PackedTrial | PackedScores | TaskError]
    events: Sequence[LiveEvent]
    warnings: Sequence[WorkerWarning]
    usage: Usage


@attrs.frozen
class BringUp:
    """What came of bringing a worker up: on which node it is, or what is wrong."""

    node: str
    problems: Sequence[str] = ()


_ray: Any = ray  # much of it is not typed
_MOST_EVENTS = 10_000
"""Live events that wait to be fetched; further ones are dropped."""
_GATHERING = 0.1
"""Seconds between two batches while tasks are under way: fetching each takes CPU here, in the driver and in Ray."""
_MANY = 8
"""Results that are fetched at once."""


class RayWorker:
    """One worker of a crew. All methods are called by the driver."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._results: dict[int, PackedTrial | PackedScores | TaskError] = {}
        self._events: list[LiveEvent] = []
        self._warnings: list[WorkerWarning] = []
        self._news = asyncio.Event()
        self._under_way = 0
        self._last_batch = 0.0
        self._gathering: asyncio.TimerHandle | None = None
        self._ending = asyncio.Event()
        self._worker: CrewWorker | None = None
        self._life: asyncio.Task[None] | None = None

    async def bring_up(self, name: str, order: CrewOrder, variables: Mapping[str, str], limiter: Any) -> BringUp:
        """Bring up the plan of an order, whose variables are handed over apart."""
        os.environ.update(variables)
        gc.set_threshold(20_000, 20, 20)  # as keval's commands do
        node = str(_ray.util.get_node_ip_address())
        up: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._life = asyncio.create_task(self._live(name, order, limiter, up))
        try:
            await up
        except (ConfigError, PreflightError) as error:
            return BringUp(node, [str(problem) for problem in error.problems])
        except Exception as error:  # noqa: BLE001 - raised here, Ray would log it; the driver replaces secrets
            return BringUp(node, ["".join(traceback.format_exception(error))])
        return BringUp(node)

    async def take(self, tasks: Mapping[int, Task]) -> None:
        """Begin tasks, by their numbers and in their order."""
        self._under_way += len(tasks)
        for number, each in tasks.items():
            task = asyncio.create_task(self._do(number, each))
            # asyncio holds tasks weakly only.
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def batch(self) -> Batch:
        """Return what was done since the last batch, once there is anything, or more of it."""
        await self._news.wait()
        self._news.clear()
        self._last_batch = time.monotonic()
        if self._gathering is not None:
            self._gathering.cancel()
            self._gathering = None
        results, self._results = self._results, {}
        events, self._events = self._events, []
        told, self._warnings = self._warnings, []
        return Batch(results, events, told, _usage())

    async def keep_events(self, *, on: bool) -> None:
        """Keep live events from now on, or no more."""
        if self._worker is not None:
            self._worker.listener = self._hear if on else None

    async def reopen(self) -> None:
        """Let judges ask endpoints anew that were given up."""
        if self._worker is not None:
            self._worker.reopen()

    async def close(self) -> Usage:
        """End all tasks, and what was brought up; returns what all of it used."""
        for task in self._tasks:
            task.cancel()
        self._ending.set()
        if self._life is not None:
            await asyncio.wait([self._life])
        return _usage()

    async def _live(self, name: str, order: CrewOrder, limiter: Any, up: asyncio.Future[None]) -> None:
        """Hold what was brought up until the worker is to end; both in one task, as MCP sessions need."""
        try:
            limits = RemoteLimits(limiter, name, RunLimits.of(order.manifest))
            opened = open_worker(order.manifest, sample_ids=order.sample_ids, scoring=order.scoring, limits=limits)
            async with opened as self._worker:
                sys.stdout = _Redacting(sys.stdout, self._worker)
                sys.stderr = _Redacting(sys.stderr, self._worker)
                warnings.showwarning = self._warn
                up.set_result(None)
                await self._ending.wait()
        except Exception as error:  # noqa: BLE001 - as in `bring_up`
            if not up.done():
                up.set_exception(error)

    async def _do(self, number: int, task: Task) -> None:
        assert self._worker is not None  # noqa: S101 - for mypy: tasks come when it is up
        result: PackedTrial | PackedScores | TaskError
        try:
            if isinstance(task, RunTask):
                result = await self._worker.run(task.key, task.sample)
            else:
                result = await self._worker.score(task.line, task.sample, task.wanted, task.against)
        except OutageError as error:
            result = TaskError("outage", self._worker.hidden(str(error)))
        except Exception as error:  # noqa: BLE001 - as in `bring_up`
            result = TaskError("defect", self._worker.hidden("".join(traceback.format_exception(error))))
        self._results[number] = result
        self._under_way -= 1
        pause = self._last_batch + _GATHERING - time.monotonic()
        if pause <= 0 or len(self._results) >= _MANY or not self._under_way:
            self._news.set()
        elif self._gathering is None:
            self._gathering = asyncio.get_running_loop().call_later(pause, self._news.set)

    def _hear(self, event: LiveEvent) -> None:
        if len(self._events) < _MOST_EVENTS:
            self._events.append(event)
            self._news.set()

    def _warn(self, message: Warning | str, category: type[Warning], filename: str, *_: object, **__: object) -> None:
        if self._worker is not None:
            text, is_plain = self._worker.hidden(str(message)), issubclass(category, PluginWarning)
            self._warnings.append(WorkerWarning(text, filename, is_plain))
            self._news.set()


class _Redacting:
    """A stream of the process, which Ray keeps in a file, without secrets."""

    def __init__(self, stream: TextIO, worker: CrewWorker) -> None:
        self._stream, self._worker = stream, worker

    def write(self, text: str) -> int:
        self._stream.write(self._worker.hidden(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _usage() -> Usage:
    own, ended = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = own.ru_utime + own.ru_stime + ended.ru_utime + ended.ru_stime
    # Linux counts memory in KiB, macOS in bytes (getrusage(2)).
    return Usage(round(seconds, 3), own.ru_maxrss * (1 if sys.platform == "darwin" else 1024))
