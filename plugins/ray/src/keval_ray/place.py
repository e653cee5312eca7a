"""A place for a worker on the cluster: one is brought up there, served, and when it is lost another one."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import attrs
import ray
from ray.exceptions import RayError

from keval.records.manifest import WorkerEntry
from keval.seams.distribution import CrewOrder, PackedScores, PackedTrial
from keval.seams.live_events import LiveEvent
from keval_ray.cluster import actor as new_actor
from keval_ray.tasks import Batch, BringUp, RunTask, Task, TaskError, Usage
from keval_ray.worker import RayWorker

_MOST_FAILURES = 3
"""Workers that may be lost in one place one after the other, none of which had a result."""
_LONGEST = 200
"""Characters that are kept of why a worker was lost."""
_TOLD_EVERY = 1.0
"""Seconds between two times that hook plugins are told what a worker did."""


@attrs.define(eq=False)
class Assigned:
    """A task that was handed in: its result to come, its group, and how many workers were lost with it."""

    number: int
    task: Task
    result: asyncio.Future[PackedTrial | PackedScores | TaskError]
    group: tuple[str, str, int] | None = None
    losses: int = 0


class PlaceWatcher(Protocol):
    """Is told what becomes of the workers of a place."""

    def came_up(self, place: WorkerPlace) -> None:
        """Note that a worker is up, and takes tasks."""
        ...

    def changed(self, place: WorkerPlace) -> None:
        """Note that the worker has done something."""
        ...

    def hear(self, place: WorkerPlace, events: Sequence[LiveEvent], told: Sequence[str]) -> None:
        """Hand on live events and warnings of the worker."""
        ...

    async def lost(self, place: WorkerPlace, tasks: Sequence[Assigned]) -> None:
        """Give the tasks of a lost worker to others, and free what it held."""
        ...

    def gave_up(self, problems: Sequence[str]) -> None:
        """Note why no worker can be brought up there."""
        ...


@attrs.define(eq=False)
class WorkerPlace:
    """Has a worker or waits for one. `entries` are all that were up there, the present one last; see `WorkerEntry`.

    `_kind` is what an actor of it reserves. While `actor` is set, it takes tasks.
    """

    _order: CrewOrder
    _shipped: Any
    _limiter: Any
    _kind: Mapping[str, Any]
    _names: Iterator[int]
    entries: list[WorkerEntry] = attrs.field(factory=list, init=False)
    actor: Any = attrs.field(default=None, init=False)
    tasks: dict[int, Assigned] = attrs.field(factory=dict, init=False)
    _outgoing: dict[int, Task] = attrs.field(factory=dict, init=False)
    _listens: bool = attrs.field(default=False, init=False)
    _told_at: float = attrs.field(default=0.0, init=False)

    @property
    def entry(self) -> WorkerEntry:
        """The worker that is there, or was there last."""
        return self.entries[-1]

    def give(self, assigned: Assigned) -> None:
        """Give the worker a task; those of one turn of the event loop are sent together."""
        if not self._outgoing:
            asyncio.get_running_loop().call_soon(self._send)
        self.tasks[assigned.number] = assigned
        self._outgoing[assigned.number] = assigned.task

    def keep_events(self, *, on: bool) -> None:
        """Let the worker keep live events, or no more."""
        if on is not self._listens and self.actor is not None:
            self._listens = on
            self.actor.keep_events.remote(on=on)

    async def serve(self, watcher: PlaceWatcher) -> None:
        """Keep a worker here until none can be brought up."""
        failures = 0
        while failures < _MOST_FAILURES:
            name = f"worker-{next(self._names)}"
            actor = new_actor(RayWorker, **self._kind).remote()
            try:
                up: BringUp = await actor.bring_up.remote(name, self._shipped, self._order.variables, self._limiter)
                if up.problems:
                    watcher.gave_up([f"{name} on {up.node}: {problem}" for problem in up.problems])
                    return
                self.entries.append(WorkerEntry(name, up.node))
                self.actor = actor
                watcher.came_up(self)
                await self._fetch(watcher, actor)
            except RayError as error:
                failures = 0 if self.actor is not None and (self.entry.trials or self.entry.scored) else failures + 1
                told = f"{type(error).__name__}: {' '.join(str(error).split())}"[:_LONGEST]
                if self.actor is None:
                    watcher.gave_up(
                        [f"{name} ended while it was brought up: {told}"] if failures == _MOST_FAILURES else []
                    )
                    continue
                self.entries[-1] = attrs.evolve(self.entry, lost=told)
                lost, self.tasks = [*self.tasks.values()], {}
                self._outgoing.clear()
                self.actor, self._listens = None, False
                await watcher.lost(self, lost)
            finally:
                if self.actor is not actor:
                    ray.kill(actor)

    async def close(self, seconds: float) -> None:
        """End the worker, and its process if it takes longer than that."""
        actor, self.actor = self.actor, None
        if actor is None:
            return
        try:
            async with asyncio.timeout(seconds):
                self._note(await actor.close.remote())
        except (RayError, TimeoutError):
            self.entries[-1] = attrs.evolve(self.entry, lost="it did not end in time")
        ray.kill(actor)

    async def _fetch(self, watcher: PlaceWatcher, actor: Any) -> None:
        """Fetch what the worker has done, until it is lost. What it does meanwhile waits there."""
        while True:
            batch: Batch = await actor.batch.remote()
            watcher.hear(self, batch.events, batch.warnings)
            for number, result in batch.results.items():
                assigned = self.tasks.pop(number, None)
                if assigned is not None and not assigned.result.done():
                    assigned.result.set_result(result)
                    self._count(assigned.task, result)
            self._note(batch.usage)
            if batch.results and time.monotonic() - self._told_at >= _TOLD_EVERY:
                self._told_at = time.monotonic()
                watcher.changed(self)

    def _count(self, task: Task, result: PackedTrial | PackedScores | TaskError) -> None:
        entry = self.entry
        if isinstance(task, RunTask):
            failure = result.failure if isinstance(result, PackedTrial) else None
            failures = Counter(entry.failures) + Counter([failure] if failure else [])
            entry = attrs.evolve(entry, trials=entry.trials + 1, failures=dict(failures))
        else:
            entry = attrs.evolve(entry, scored=entry.scored + 1)
        self.entries[-1] = entry

    def _note(self, usage: Usage) -> None:
        self.entries[-1] = attrs.evolve(self.entry, cpu_seconds=usage.cpu_seconds, memory_bytes=usage.memory_bytes)

    def _send(self) -> None:
        outgoing, self._outgoing = self._outgoing, {}
        if self.actor is not None and outgoing:
            self.actor.take.remote(outgoing)
