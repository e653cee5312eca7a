"""The file of recorded answers: checked once from end to end, then read line by line."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Collection
from io import BufferedReader
from pathlib import Path
from sys import intern
from zlib import crc32

import orjson

from keval.plugin import Problem, TrialError, open_input
from keval_recorded.answer import Answer, read_answer

__all__ = ["AnswerFile"]

_MOST_PROBLEMS = 50
_NONE = array("Q")
_BOM = b"\xef\xbb\xbf"


class AnswerFile:
    """Knows where in the file each answer begins, and keeps no answer in memory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.digest = ""
        self._starts: dict[str | None, dict[str, array[int]]] = {}
        self._open: BufferedReader | None = None

    def check(self, samples: Collection[str], conditions: Collection[str]) -> list[Problem]:
        """Read the file through and return what is wrong, each with its line: the first 50, and how many more."""
        problems: list[Problem] = []
        starts: dict[str | None, dict[str, array[int]]] = {}
        digest = hashlib.sha256()
        end = 0
        try:
            with open_input(self.path) as lines:
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

    def count(self, sample: str, condition: str) -> int:
        """Say how many answers there are to a sample under a condition."""
        return sum(map(len, self._places(sample, condition))) // 2

    def read(self, sample: str, condition: str, repetition: int) -> Answer | None:
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
                self._open = open_input(self.path)
            self._open.seek(start)
            line = self._open.readline()
        except OSError as error:
            raise TrialError(f"{self.path} cannot be read any more: {error}", kind="changed") from error
        if crc32(line) != check:
            raise TrialError(f"{self.path} has changed since the run began", kind="changed")
        return _parse(line)

    def close(self) -> None:
        """Close the file; it is opened again when something is read."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def _places(self, sample: str, condition: str) -> tuple[array[int], array[int]]:
        """Where the answers begin, each followed by its CRC-32: those tied to the condition, then the free."""
        tied, free = (self._starts.get(key, {}).get(sample, _NONE) for key in (condition, None))
        return tied, free


def _parse(line: bytes) -> Answer:
    try:
        record = orjson.loads(line.rstrip(b"\r\n").removeprefix(_BOM))
    except orjson.JSONDecodeError as error:
        raise ValueError(f"not valid JSON at column {error.colno}: {error.msg}; one object a line") from error
    return read_answer(record)


def _check_belonging(answer: Answer, samples: Collection[str], conditions: Collection[str]) -> None:
    if answer.id not in samples:
        raise ValueError(f"an answer to {answer.id!r}, which the dataset does not have")
    if answer.condition is not None and answer.condition not in conditions:
        raise ValueError(f"no condition named {answer.condition!r}; conditions: {', '.join(sorted(conditions))}")
