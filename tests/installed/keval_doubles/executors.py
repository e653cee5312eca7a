"""An executor that runs one trial after the other, the last one first."""

import attrs

from keval.plugin import Blob, Job


@attrs.frozen
class Backwards:
    """Leaves a note beside each trial."""

    note: str = "ran"

    async def execute(self, job: Job) -> None:
        for key in reversed(list(job.keys)):
            trial = await job.worker.run(key, job.sample(key.sample), job.outbox)
            job.outbox.blob(Blob.of(f"{self.note} {key.id}".encode(), "text/plain"))
            await job.outbox.trial(trial)
