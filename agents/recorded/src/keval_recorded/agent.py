"""The agent plugin: a file of recorded answers, found by sample, condition and repetition."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

import attrs

from keval import Sample, Transcript
from keval.plugin import Context, Model, Problem, TrialError
from keval_recorded.answer_file import AnswerFile

__all__ = ["Recorded"]


def _is_model(instance: object, attribute: attrs.Attribute[str | None], value: str | None) -> None:
    if value is not None:
        Model.parse(value)


@attrs.define
class Recorded:
    """Answers recorded in a JSONL file, one object a line: `id`, `response`, and what else is known of each.

    Several lines for one `id` are repetitions. `condition` in a line ties it to one condition; a line without it
    counts for every one. `model` (`provider/name`) says which model answered, so that what its tokens cost is known.
    """

    path: Path
    model: str | None = attrs.field(default=None, validator=_is_model)
    _file: AnswerFile = attrs.field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        self._file = AnswerFile(self.path)

    @property
    def digest(self) -> str:
        """The SHA-256 of the file."""
        return self._file.digest

    def check_answers(self, samples: Collection[str], conditions: Collection[str]) -> Iterable[Problem]:
        """Read the file through; see `keval.plugin.PrerecordedAgent`."""
        return self._file.check(samples, conditions)

    def count_answers(self, sample: str, condition: str) -> int:
        """Say how many lines answer the sample under the condition."""
        return self._file.count(sample, condition)

    async def run(self, sample: Sample, context: Context) -> Transcript:
        """Return what was recorded.

        Raises:
            TrialError: there is no such answer, or an error was recorded in its stead.
        """
        answer = self._file.read(sample.id, context.condition, context.repetition)
        if answer is None:
            problem = f"{self.path} has no answer to {sample.id!r} under {context.condition!r}"
            raise TrialError(problem, kind="no_answer")
        if answer.error is not None:
            raise TrialError(f"recorded: {answer.error}", kind="recorded_error")
        try:
            return answer.transcript(sample)
        except ValueError as error:
            raise TrialError(f"{self.path}: {error}", kind="bad_record") from error

    async def aclose(self) -> None:
        """Close the file."""
        self._file.close()
