"""The agent plugin: a file of recorded answers, checked once from end to end, then read line by line."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Collection, Iterable, MutableSequence
from io import BufferedReader
from pathlib import Path
from sys import intern
from zlib import crc32

import attrs
import orjson

from keval import Sample, Transcript
from keval.plugin import Context, Model, Problem, TrialError, open_input
from keval_recorded.answer import RecordedAnswer, read_answer

_MOST_PROBLEMS = 50
# Arrays take 8 bytes a number, and a file may have millions of answers.
_NONE = array("Q")
_BOM = b"\xef\xbb\xbf"


def _is_model(instance: object, attribute: attrs.Attribute[str | None], value: str | None) -> None:
    if value is not None:
        Model.parse(value)


@attrs.define
class Recorded:
    """Answers recorded in a JSONL file, one object a line: `id`, `response`, and what else is known of each.

    Several lines for one `id` are repetitions. `condition` in a line ties it to one condition; a line without it
    counts for every one. `model` (`provider/name`) says which model answered, so that what its tokens cost is known.
    With `partial`, a sample without an answer is left out; else its trial fails.
    """

    path: Path
    model: str | None = attrs.field(default=None, validator=_is_model)
    partial: bool = False
    digest: str = attrs.field(default="", init=False, eq=False)
    """The SHA-256 of the file, once it was checked."""
    _starts: dict[str | None, dict[str, MutableSequence[int]]] = attrs.field(
        factory=dict, init=False, repr=False, eq=False
    )
    """Where in the file each answer begins, by condition and sample; none is kept in memory."""
    _open: BufferedReader | None = attrs.field(default=None, init=False, repr=False, eq=False)
    _file: Path = attrs.field(default=Path(), init=False, repr=False, eq=False)

    def lines(self) -> Path:
        """Return the file that has a line for each answer; called once, before it is read."""
        return self.path

    def check_answers(self, samples: Collection[str], conditions: Collection[str]) -> Iterable[Problem]:
        """Read the file through; see `keval.plugin.PrerecordedAgent`.

        Returns what is wrong, each with its line: the first 50, and how many more.
        """
        problems: list[Problem] = []
        starts: dict[str | None, dict[str, MutableSequence[int]]] = {}
        digest = hashlib.sha256()
        end = 0
        try:
            self._file = self.lines()
            with open_input(self._file) as lines:
                for number, line in enumerate(lines, start=1):
                    digest.update(line)
                    start, end = end, end + len(line)
                    if not line.removeprefix(_BOM).strip():
                        continue
                    try:
                        answer = _parse(line)
                        _check_belonging(answer, samples, conditions)
                    except ValueError as error:
                        problems.append(Problem(f"{self.path}:{number}", str(error)))
                    else:
                        # The ids are those of the dataset, so they need not be in memory twice.
                        name = intern(answer.id)
                        starts.setdefault(answer.condition, {}).setdefault(name, array("Q")).extend(
                            (start, crc32(line))
                        )
        except OSError as error:
            return [Problem(str(self.path), f"the recorded answers cannot be read: {error}; see `path:`")]
        if not starts and not problems:
            return [Problem(str(self.path), "no answers are recorded here; write one object a line")]
        self.digest, self._starts = digest.hexdigest(), starts
        kept, left_out = problems[:_MOST_PROBLEMS], problems[_MOST_PROBLEMS:]
        return [*kept, *(Problem(first.place, f"{len(left_out)} more like these") for first in left_out[:1])]

    def count_answers(self, sample: str, condition: str) -> int:
        """Say how many lines answer the sample under the condition."""
        return sum(map(len, self._places(sample, condition))) // 2

    async def run(self, sample: Sample, context: Context) -> Transcript:
        """Return what was recorded.

        Raises:
            TrialError: there is no such answer, or an error was recorded in its stead.
        """
        answer = self._read(sample.id, context.condition, context.repetition)
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
        """Close the file; it is opened again when something is read."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def _read(self, sample: str, condition: str, repetition: int) -> RecordedAnswer | None:
        """Read one answer; `None` when there are not that many.

        Raises TrialError when the file is not the one that was checked.
        """
        tied, free = self._places(sample, condition)
        at = 2 * (repetition - 1)
        places, at = (tied, at) if at < len(tied) else (free, at - len(tied))
        if at >= len(places):
            return None
        start, check = places[at : at + 2]
        try:
            if self._open is None:
                self._open = open_input(self._file)
            self._open.seek(start)
            line = self._open.readline()
        except OSError as error:
            raise TrialError(f"{self.path} cannot be read any more: {error}", kind="changed") from error
        if crc32(line) != check:
            raise TrialError(f"{self.path} has changed since the run began", kind="changed")
        return _parse(line)

    def _places(self, sample: str, condition: str) -> tuple[MutableSequence[int], MutableSequence[int]]:
        """Where the answers begin, each followed by its CRC-32: those tied to the condition, then the free."""
        tied, free = (self._starts.get(key, {}).get(sample, _NONE) for key in (condition, None))
        return tied, free


def _parse(line: bytes) -> RecordedAnswer:
    try:
        record = orjson.loads(line.rstrip(b"\r\n").removeprefix(_BOM))
    except orjson.JSONDecodeError as error:
        raise ValueError(f"not valid JSON at column {error.colno}: {error.msg}; one object a line") from error
    return read_answer(record)


def _check_belonging(answer: RecordedAnswer, samples: Collection[str], conditions: Collection[str]) -> None:
    if answer.id not in samples:
        raise ValueError(f"an answer to {answer.id!r}, which the dataset does not have")
    if answer.condition is not None and answer.condition not in conditions:
        raise ValueError(f"no condition named {answer.condition!r}; conditions: {', '.join(sorted(conditions))}")
