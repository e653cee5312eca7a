"""Executors: one that runs the last trial first, and one whose worker is brought up from the manifest alone."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import attrs

from keval import Sample
from keval.plugin import Blob, CrewOrder, CrewWatcher, Job
from keval.records.manifest import WorkerEntry
from keval.seams.distribution import PackedScores, WantedScore
from keval_remote import open_worker
from keval_remote.crew.worker import CrewWorker


@attrs.frozen
class Backwards:
    """Leaves a note beside each trial."""

    note: str = "ran"

    async def execute(self, job: Job) -> None:
        for key in reversed(list(job.keys)):
            trial = await job.worker.run(key, job.sample(key.sample), job.outbox)
            job.outbox.blob(Blob.of(f"{self.note} {key.id}".encode(), "text/plain"))
            await job.outbox.trial(trial)


@attrs.frozen
class Alone:
    """A crew of one worker."""

    worker: CrewWorker

    @property
    def workers(self) -> Sequence[WorkerEntry]:
        return ()

    async def execute(self, job: Job) -> None:
        for key in job.keys:
            await job.outbox.packed(await self.worker.run(key, job.sample(key.sample)))

    async def score(
        self, trial: bytes, sample: Sample, wanted: Sequence[WantedScore], against: bytes | None = None
    ) -> PackedScores:
        return await self.worker.score(trial, sample, wanted, against)

    async def reopen(self) -> None:
        self.worker.reopen()


@attrs.frozen
class Apart:
    """Has a crew of one worker, which is brought up from the manifest."""

    @asynccontextmanager
    async def open(self, order: CrewOrder, watcher: CrewWatcher) -> AsyncIterator[Alone]:
        async with open_worker(order.manifest, sample_ids=order.sample_ids, scoring=order.scoring) as worker:
            yield self.crew(worker)

    def crew(self, worker: CrewWorker) -> Alone:
        return Alone(worker)
