"""An agent and a metric of a third party."""

import attrs

from keval import Sample, Score, Transcript, Trial
from keval.plugin import Context


@attrs.frozen
class Clerk:
    """Answers with what a book says about a word of the question."""

    book: dict[str, str] = attrs.field(factory=dict)

    async def run(self, sample: Sample, context: Context) -> Transcript:
        with context.builder.turn(sample.question):
            found = (told for word, told in self.book.items() if word in sample.question)
            context.builder.said(next(found, "I do not know."))
        return context.builder.transcript()


@attrs.frozen
class Named:
    """Scores 1 where the answer names the golden answer."""

    def score(self, trial: Trial) -> Score:
        answer = trial.sample.answer
        if answer is None:
            return Score(None, "there is no golden answer")
        return Score(float(answer in trial.output), f"looked for {answer}")
