"""An agent and a metric that need nothing but keval, for evaluations whose subject is another plugin."""

from __future__ import annotations

import asyncio
import math
from typing import ClassVar

import attrs
from attrs.validators import ge

from keval import Sample, Scale, Score, Transcript, Trial
from keval.errors import TrialError
from keval.seams.contexts import Context


@attrs.frozen
class Echo:
    """The agent `testing/echo`, which has no model: it answers with the golden answer, or else repeats the question.

    Trials of the samples `fails` fail. An answer takes `delay` seconds.
    """

    fails: tuple[str, ...] = ()
    delay: float = attrs.field(default=0.0, validator=ge(0))

    async def run(self, sample: Sample, context: Context) -> Transcript:
        """Answer each message; see `keval.plugin.Agent`."""
        for text in sample.asked:
            with context.builder.turn(text):
                await asyncio.sleep(self.delay)
                if sample.id in self.fails:
                    raise TrialError(f"{sample.id} is one of the samples that fail", kind="told")
                context.builder.said(text if sample.answer is None else sample.answer)
        return context.builder.transcript()


@attrs.frozen
class Words:
    """The metric `testing/words`: how many words the answer has."""

    scale: ClassVar[Scale] = Scale(0, math.inf, unit="words")

    def score(self, trial: Trial) -> Score:
        """Count the words; see `keval.plugin.Metric`."""
        return Score(float(len(trial.output.split())))
