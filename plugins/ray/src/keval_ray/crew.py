"""The crew: workers on a cluster, kept up in their places and given tasks; what a lost one had goes to others."""

from __future__ import annotations

import asyncio
import itertools
import time
import warnings
from collections import Counter
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import attrs
import ray
from ray.exceptions import RayError

from keval import Failure, RunError, Sample, Trial
from keval.errors import OutageError, PluginWarning, PreflightError, TrialError
from keval.execute.limits import RunLimits
from keval.records.manifest import WorkerEntry
from keval.records.trial import TrialKey
from keval.seams.distribution import CrewOrder, CrewWatcher, Job, JobOutbox, PackedScores, PackedTrial, WantedScore
from keval.seams.live_events import LiveEvent
from keval_ray.cluster import Demand, actor as new_actor, here
from keval_ray.limiter import Limiter
from keval_ray.worker import Batch, BringUp, RayWorker, RunTask, ScoreTask, Task, TaskError, Usage, WorkerWarning

_LOOKING = 2.0
"""Seconds between two looks at whether the cluster has place for more workers."""
_MOST_LOSSES = 3
"""Workers that a task may be lost with: it may be what ends them."""
_MOST_WAITING = 10_000
"""Requests and trials that may wait for the limiter at once."""
_CLOSING = 3.0
"""Seconds for workers to end what they brought up; then their processes are ended."""
_MOST_FAILURES = 3
"""Workers that may be lost in one place one after the other, none of which had a result."""
_LONGEST = 200
"""Characters that are kept of why a worker was lost."""
_TOLD_EVERY = 1.0
"""Seconds between two times that hook plugins are told what a worker did."""


@attrs.define(eq=False)
class RayCrew:
    """See `keval.plugin.Crew`.

    A task goes to the worker that has the fewest, or waits until one is up.
    """

    order: CrewOrder
    _watcher: CrewWatcher
    limiter: Any
    _places: list[WorkerPlace] = attrs.field(factory=list, init=False)
    _waiting: list[Assigned] = attrs.field(factory=list, init=False)
    _numbers: Iterator[int] = attrs.field(factory=lambda: itertools.count(1), init=False)
    names: Iterator[int] = attrs.field(factory=lambda: itertools.count(1), init=False)
    _serving: dict[asyncio.Task[None], WorkerPlace] = attrs.field(factory=dict, init=False)
    _problems: list[str] = attrs.field(factory=list, init=False)
    _told: int = attrs.field(default=0, init=False)
    _settled: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    _outbox: JobOutbox | None = attrs.field(default=None, init=False)

    @classmethod
    @asynccontextmanager
    async def open(cls, demand: Demand, order: CrewOrder, watcher: CrewWatcher) -> AsyncIterator[RayCrew]:
        """Bring workers up; yields when the first is. Raises PreflightError: none can be brought up."""
        limiter = new_actor(Limiter, num_cpus=0, max_concurrency=_MOST_WAITING, scheduling_strategy=here()).remote(
            RunLimits.of(order.manifest)
        )
        crew = cls(order, watcher, limiter)
        watching = [*map(asyncio.create_task, (crew._keep_places(demand), crew._tell_endpoints(), crew._keep_events()))]
        watching[0].add_done_callback(crew._left)  # without it no worker comes up any more
        try:
            await crew._settled.wait()
            if not crew._up:
                raise PreflightError(crew._problems)
            yield crew
        finally:
            for task in watching:
                task.cancel()
            await asyncio.gather(*watching, return_exceptions=True)
            await crew._close()

    @property
    def workers(self) -> Sequence[WorkerEntry]:
        """Every worker that came up until now."""
        return [entry for place in self._places for entry in place.entries]

    async def execute(self, job: Job) -> None:
        """Run every trial of the job, at most `job.max_concurrent` at once."""
        if job.max_concurrent < len(self._places):
            told = f"{len(self._places)} workers have {job.max_concurrent} trials at once between them"
            warnings.warn(f"{told}; raise execution.max_concurrent (-j)", PluginWarning, stacklevel=2)
        self._outbox = job.outbox
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(job.max_concurrent, job.count)):
                    group.create_task(self._run(job, group))
        finally:
            self._outbox = None

    async def score(
        self, trial: bytes, sample: Sample, wanted: Sequence[WantedScore], against: bytes | None = None
    ) -> PackedScores:
        """Make scores of a trial; see `keval.plugin.Crew`."""
        scores = await self._done(ScoreTask(trial, sample, wanted, against))
        assert isinstance(scores, PackedScores)  # noqa: S101 - for mypy
        return scores

    async def reopen(self) -> None:
        """Let judges ask endpoints anew that were given up."""
        for place in self._up:
            with suppress(RayError):  # its loss is noticed where its results are waited for
                await place.actor.reopen.remote()

    async def _run(self, job: Job, group: asyncio.TaskGroup) -> None:
        """Run trials one after the other; while one runs, the one before is written to disk."""
        writing: asyncio.Task[None] | None = None
        # All of these loops share one iterator, so each key is taken once.
        for key in job.keys:
            # Begun at once, in the order in which trials come: one may bring content that another one refers to.
            following = group.create_task(await self._answered(job, key))
            if writing is not None:
                await writing
            writing = following
            await asyncio.sleep(0)  # the outbox counts the trial before the next key is asked for

    async def _answered(self, job: Job, key: TrialKey) -> Coroutine[Any, Any, None]:
        """Have a trial run, and return what hands it to the outbox."""
        try:
            packed = await self._done(RunTask(key, job.sample(key.sample)))
        except TrialError as error:
            return job.outbox.trial(self._failed(key, job.sample(key.sample), error))
        assert isinstance(packed, PackedTrial)  # noqa: S101 - for mypy
        return job.outbox.packed(packed)

    def _failed(self, key: TrialKey, sample: Sample, error: TrialError) -> Trial:
        agent = self.order.manifest.agents[key.agent]
        return Trial(
            id=key.id,
            sample=sample,
            agent=key.agent,
            condition=key.condition,
            repetition=key.repetition,
            failure=Failure(error.stage, error.kind, str(error)),
            characteristics=agent.characteristics,
            model=agent.model,
        )

    async def _done(self, task: RunTask | ScoreTask) -> PackedTrial | PackedScores:
        """Have a task done, by another worker if one is lost.

        Raises:
            TrialError: workers were lost with it again and again.
            OutageError: the endpoint of an agent's model was given up.
            RunError: no worker is left, or a worker has a defect.
        """
        assigned = Assigned(next(self._numbers), task, asyncio.get_running_loop().create_future())
        self._assign(assigned)
        try:
            result = await assigned.result
        finally:
            # If this was cancelled, `lost` and `_fetch` see by it that nobody waits any more.
            assigned.result.cancel()
        if not isinstance(result, TaskError):
            return result
        if result.kind == "outage":
            raise OutageError(result.message)
        raise RunError(f"a worker failed:\n{result.message}")

    @property
    def _up(self) -> list[WorkerPlace]:
        return [place for place in self._places if place.actor is not None]

    def _assign(self, assigned: Assigned) -> None:
        place = min(self._up, key=lambda each: len(each.tasks), default=None)
        if place is None:
            if self._settled.is_set() and not self._serving:
                assigned.result.set_exception(self._none_left())
            else:
                self._waiting.append(assigned)
            return
        place.give(assigned)

    def _none_left(self) -> RunError:
        told = "; ".join(dict.fromkeys(self._problems)) or "all were lost"
        return RunError(f"no worker is left: {told}; `keval resume RUN` continues, also with `--executor local`")

    async def _keep_places(self, demand: Demand) -> None:
        """Keep as many places as are wanted, or as the cluster has, also when it grows."""
        told = False
        # What is put may be written to disk, so the variables go another way.
        shipped = ray.put(attrs.evolve(self.order, variables={}))
        while True:
            wanted = await asyncio.to_thread(demand.places)
            for _ in range(wanted - len(self._places)):
                place = WorkerPlace(self, shipped, demand.actor_options)
                self._places.append(place)
                task = asyncio.create_task(place.serve())
                self._serving[task] = place
                task.add_done_callback(self._left)
            if not self._places and not told:
                told = True
                warnings.warn(f"no node has place for a worker, which needs {demand}", PluginWarning, stacklevel=2)
            await asyncio.sleep(_LOOKING)

    def came_up(self, place: WorkerPlace) -> None:
        """Note that a worker is up; it gets what waits."""
        self._settled.set()
        self._tell_problems()
        waiting, self._waiting = self._waiting, []
        for assigned in waiting:
            self._assign(assigned)
        self._watcher.worker_changed(place.entry)

    def changed(self, place: WorkerPlace) -> None:
        """Note that a worker did something, was lost or ended."""
        self._watcher.worker_changed(place.entry)

    def hear(self, place: WorkerPlace, events: Sequence[LiveEvent], told: Sequence[WorkerWarning]) -> None:
        """Hand on live events and warnings of a worker."""
        if (outbox := self._outbox) is not None:
            for event in events:
                outbox.event(event)
        for each in told:
            kind = PluginWarning if each.is_plain else UserWarning
            warnings.warn_explicit(f"{place.entry.name}: {each.text}", kind, each.file, 1)

    async def lost(self, place: WorkerPlace, tasks: Sequence[Assigned]) -> None:
        """Give the tasks of a lost worker to others, and free what it held."""
        self._watcher.worker_changed(place.entry)
        with suppress(RayError):  # the limiter is lost with its node; whoever asks it next tells
            await self.limiter.forget.remote(place.entry.name)
        for assigned in tasks:
            if assigned.result.done():  # the run has ended, and waits for it no more
                continue
            assigned.losses += 1
            if assigned.losses < _MOST_LOSSES:
                self._assign(assigned)
            else:
                told = f"{_MOST_LOSSES} workers ended while they worked on it; the last one: {place.entry.lost}"
                assigned.result.set_exception(TrialError(told, kind="worker_lost"))

    def gave_up(self, problems: Sequence[str]) -> None:
        """Note why a place is given up. It is told at once if the run goes on without it."""
        self._problems += problems
        self._tell_problems()

    def _tell_problems(self) -> None:
        """Warn of what keeps workers from coming up, if any is up; without one, it is the error that ends the run."""
        if self._up:
            for problem in self._problems[self._told :]:
                warnings.warn(f"{problem}; the run goes on with other workers", PluginWarning, stacklevel=2)
            self._told = len(self._problems)

    def _left(self, task: asyncio.Task[None]) -> None:
        """Note that a place is given up, or that none is added. Without any left, nothing that waits can be done."""
        self._serving.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.gave_up([f"{type(error).__name__}: {error}"])
        if self._serving:
            return
        self._settled.set()
        for assigned in self._waiting:
            if not assigned.result.done():
                assigned.result.set_exception(self._none_left())
        self._waiting.clear()

    async def _tell_endpoints(self) -> None:
        with suppress(RayError):
            while True:
                for change in await self.limiter.changes.remote():
                    self._watcher.endpoint_changed(*change)

    async def _keep_events(self) -> None:
        """Let workers keep live events while anybody listens to them."""
        while True:
            wanted = self._outbox is not None and self._outbox.wants_events
            for place in self._up:
                place.keep_events(on=wanted)
            await asyncio.sleep(0.2)

    async def _close(self) -> None:
        """End all workers with what they brought up."""
        for task in [*self._serving]:
            task.cancel()
        up = self._up
        await asyncio.gather(*(place.close(_CLOSING) for place in up))
        for place in up:
            self._watcher.worker_changed(place.entry)
        ray.kill(self.limiter)


@attrs.define(eq=False)
class Assigned:
    """A task that was handed in: its result to come, and how many workers were lost with it."""

    number: int
    task: Task
    result: asyncio.Future[PackedTrial | PackedScores | TaskError]
    losses: int = 0


@attrs.define(eq=False)
class WorkerPlace:
    """Has a worker or waits for one. `entries` are all that were up there, the present one last; see `WorkerEntry`.

    `_kind` is what an actor of it reserves. While `actor` is set, it takes tasks.
    """

    _crew: RayCrew
    _shipped: Any
    _kind: Mapping[str, Any]
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

    async def serve(self) -> None:
        """Keep a worker here until none can be brought up."""
        crew, failures = self._crew, 0
        while failures < _MOST_FAILURES:
            # A new name, as the limiter gives a lost worker nothing any more.
            name = f"worker-{next(crew.names)}"
            actor = new_actor(RayWorker, **self._kind).remote()
            try:
                up: BringUp = await actor.bring_up.remote(name, self._shipped, crew.order.variables, crew.limiter)
                if up.problems:
                    # A problem of the plan or the node is the same next time, so the place is not tried again.
                    crew.gave_up([f"{name} on {up.node}: {problem}" for problem in up.problems])
                    return
                self.entries.append(WorkerEntry(name, up.node))
                self.actor = actor
                crew.came_up(self)
                await self._fetch(actor)
            except RayError as error:
                # A worker that had results has not failed by what every worker here would fail by.
                failures = 0 if self.actor is not None and (self.entry.trials or self.entry.scored) else failures + 1
                told = f"{type(error).__name__}: {' '.join(str(error).split())}"[:_LONGEST]
                if self.actor is None:
                    crew.gave_up(
                        [f"{name} ended while it was brought up: {told}"] if failures == _MOST_FAILURES else []
                    )
                    continue
                self.entries[-1] = attrs.evolve(self.entry, lost=told)
                lost, self.tasks = [*self.tasks.values()], {}
                self._outgoing.clear()
                self.actor, self._listens = None, False
                await crew.lost(self, lost)
            finally:
                # The one that is up is ended by `close`, which first lets it end what it started.
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

    async def _fetch(self, actor: Any) -> None:
        """Fetch what the worker has done, until it is lost. What it does meanwhile waits there."""
        while True:
            batch: Batch = await actor.batch.remote()
            self._crew.hear(self, batch.events, batch.warnings)
            for number, result in batch.results.items():
                assigned = self.tasks.pop(number, None)
                if assigned is not None and not assigned.result.done():
                    assigned.result.set_result(result)
                    self._count(assigned.task, result)
            self._note(batch.usage)
            if batch.results and time.monotonic() - self._told_at >= _TOLD_EVERY:
                self._told_at = time.monotonic()
                self._crew.changed(self)

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
