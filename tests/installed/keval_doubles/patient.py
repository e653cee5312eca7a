"""An agent that waits for a sign, twice, so that a test can look at it in between."""

import asyncio
from pathlib import Path

import attrs

from keval import Sample, Transcript
from keval.plugin import Context, ModelError
from keval.records.transcript import Refusal


@attrs.define
class Patient:
    """Waits for the file `begin`; fails once; calls the tool `look`, which returns when the file `end` is there."""

    path: Path
    token: str = ""

    async def run(self, sample: Sample, context: Context) -> Transcript:
        await self._sign("begin")
        builder = context.builder
        with builder.turn(sample.question):
            if context.attempt == 1:
                builder.refused(Refusal(429, "slow down, token-of-mine", 0.0))
                raise ModelError("too many requests for token-of-mine", status=429)
            builder.model_called()
            builder.called("look", {})
            await self._sign("end")
            builder.returned("a cat", sent=False)
            builder.said("a cat")
        return builder.transcript()

    async def _sign(self, name: str) -> None:
        while not (self.path / name).exists():  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(0.005)
