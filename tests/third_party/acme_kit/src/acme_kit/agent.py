"""A conversational agent without a model."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import attrs

from keval import Sample, Transcript
from keval.plugin import Context, run_conversation


@attrs.define
class Talk:
    """Repeats what it is told, and says how often it was asked before."""

    context: Context
    asked: int = 0

    async def ask(self, text: str) -> None:
        with self.context.builder.turn(text):
            self.context.builder.model_called()
            self.context.builder.said(f"{text} ({self.asked} before)")
        self.asked += 1


@attrs.frozen
class Parrot:
    """Repeats what it is asked."""

    async def run(self, sample: Sample, context: Context) -> Transcript:
        return await run_conversation(self, sample, context)

    @asynccontextmanager
    async def open(self, context: Context) -> AsyncIterator[Talk]:
        yield Talk(context)
