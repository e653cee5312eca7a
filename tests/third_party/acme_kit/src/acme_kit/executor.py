"""An executor that runs one trial after the other, the last one first."""

from keval.plugin import Blob, Job


class Backwards:
    """Runs trials in reverse order, and leaves a note beside each."""

    async def execute(self, job: Job) -> None:
        for key in reversed(list(job.keys)):
            trial = await job.worker.run(key, job.sample(key.sample), job.outbox)
            job.outbox.blob(Blob.of(f"ran {key.id}".encode(), "text/plain"))
            await job.outbox.trial(trial)
