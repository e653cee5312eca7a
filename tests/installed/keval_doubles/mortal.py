"""An agent that writes down what it is asked, and ends keval in the middle of a run where it is told to."""

import asyncio
import os
import signal
from pathlib import Path

import attrs

from keval import Sample, Transcript
from keval.plugin import Context, TrialError


@attrs.define
class Mortal:
    """Answers with the question and its seed. `MORTAL_DIES_AFTER` answers it kills its own process.

    A question that is listed in `fails` fails, until the file `healed` is there.
    """

    journal: Path
    suffix: str = ""
    fails: tuple[str, ...] = ()
    healed: Path | None = None
    _answered: int = attrs.field(default=0, init=False)

    async def run(self, sample: Sample, context: Context) -> Transcript:
        with self.journal.open("a", encoding="utf-8") as journal:
            journal.write(f"{context.trial}\n")
        await asyncio.sleep(0.001)
        if sample.id in self.fails and not (self.healed and self.healed.exists()):
            raise TrialError("it is not well", kind="ill")
        if str(self._answered) == os.environ.get("MORTAL_DIES_AFTER"):
            os.kill(os.getpid(), signal.SIGKILL)
        self._answered += 1
        with context.builder.turn(sample.question):
            context.builder.said(f"{context.instructions} {sample.question} {context.seed}{self.suffix}")
        return context.builder.transcript()
