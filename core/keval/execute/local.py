"""The executor `local`: the worker of keval's own process, and as many trials at once as the run allows."""

from __future__ import annotations

import asyncio

import attrs

from keval.seams.distribution import Job


@attrs.frozen
class Local:
    """Runs all trials in this process."""

    async def execute(self, job: Job) -> None:
        """Run every trial of the job, at most `job.max_concurrent` at once."""
        async with asyncio.TaskGroup() as group:
            for _ in range(min(job.max_concurrent, job.count)):
                group.create_task(_run(job, group))


async def _run(job: Job, group: asyncio.TaskGroup) -> None:
    """Run trials one after the other; while one runs, the one before is written to disk."""
    writing: asyncio.Task[None] | None = None
    for key in job.keys:
        trial = await job.worker.run(key, job.sample(key.sample), job.outbox)
        if writing is not None:
            await writing
        writing = group.create_task(job.outbox.trial(trial))
        await asyncio.sleep(0)  # the outbox counts the trial before the next key is asked for
