"""The scores of a run, in passes: a pass that is cut short keeps what it scored, and goes on when it is asked again.

A pass writes to a file of its own and takes the place of what it scores again when it has ended. Every line has the
digest of what made it, so that scores of another version of a scorer are never taken for this one's.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from itertools import chain
from pathlib import Path
from sys import intern
from typing import Any, TypeAlias

import attrs
import orjson

from keval.run.files import explained, read_lines, replacing, write_all
from keval.run.lines import read_score
from keval.scores import ScoreLine, Scorer

__all__ = ["Pass", "ScoresFile", "Wanted"]

_Line: TypeAlias = tuple[bytes, Mapping[str, Any]]


@attrs.frozen
class Wanted:
    """The scores that a pass makes of each trial: by these scorers, each with its digest.

    `repetitions` is how often judges are asked.
    """

    digests: Mapping[Scorer, str]
    repetitions: int

    @property
    def key(self) -> str:
        """What tells the pass from one of other scorers, or of other versions of them."""
        return hashlib.sha256(repr(sorted(self.digests.items(), key=str)).encode()).hexdigest()[:16]

    @cached_property
    def bits(self) -> dict[tuple[str, str | None, int], int]:
        """A bit for each score wanted of a trial: by its scorer, and the repetition of a judge."""
        slots = [
            (*scorer, repetition)
            for scorer in self.digests
            for repetition in range(1, (self.repetitions if scorer[1] is not None else 1) + 1)
        ]
        return {slot: 1 << number for number, slot in enumerate(slots)}

    def bit(self, line: Mapping[str, Any]) -> int:
        """The bit of a score that stands in scores.jsonl; 0 for one that is not wanted, or that failed."""
        digest = self.digests.get((line["metric"], line["judge"]))
        if line["digest"] != digest or line["failure"] is not None:
            return 0
        return self.bits.get((line["metric"], line["judge"], _repetition(line)), 0)


@attrs.frozen
class Pass:
    """A scoring pass under way: `write` keeps lines; `had` are the scores that need not be made, as bits by trial."""

    write: Callable[[bytes], None]
    had: Mapping[str, int]
    _wanted: Wanted

    def lacks(self, trial: str, metric: str, judge: str | None, repetition: int) -> bool:
        """Whether a score is to be made."""
        return not self.had.get(trial, 0) & self._wanted.bits[metric, judge, repetition]

    def had_already(self, line: ScoreLine) -> bool:
        """Whether a score was there before."""
        repetition = line.judgement.repetition if line.judgement else 1
        return bool(self.had.get(line.trial, 0) & self._wanted.bits.get((*line.scorer, repetition), 0))


@attrs.frozen
class ScoresFile:
    """scores.jsonl of a run, and beside it the lines of passes that have not ended."""

    path: Path

    def read(self) -> Iterator[ScoreLine]:
        """Read the scores one by one: those of passes that have ended, or of the first, while that has not."""
        files = [self.path] if self.path.exists() else self._unfinished()
        return chain.from_iterable(read_lines(file, read_score) for file in files)

    @contextmanager
    def scoring(self, wanted: Wanted, *, missing: bool = False) -> Iterator[Pass]:
        """Score in a pass; one of the same key that was cut short goes on.

        With `missing`, only scores are made that there are none of, or that failed.
        """
        if not self.path.exists():
            for unfinished in self._unfinished(wanted)[:1]:
                unfinished.rename(self.path)  # of the run itself, which was cut short while it scored
        current = self._current(wanted)
        had = self._resumed(current, wanted)
        if missing:
            for line in read_lines(self.path, orjson.loads):
                if bit := wanted.bit(line):
                    had[intern(line["trial"])] = had.get(line["trial"], 0) | bit
        with explained(self.path):
            file = current.open("ab", buffering=0)
        with file:

            def write(lines: bytes) -> None:
                with explained(self.path):
                    write_all(file, lines)

            yield Pass(write, had, wanted)
            with explained(self.path):
                os.fsync(file.fileno())
        self._settle(current, wanted, missing=missing)

    def _current(self, wanted: Wanted) -> Path:
        return self.path.with_name(f".scores.{wanted.key}.jsonl")

    def _unfinished(self, other_than: Wanted | None = None) -> list[Path]:
        found = sorted(self.path.parent.glob(".scores.*.jsonl"))
        return [file for file in found if other_than is None or file != self._current(other_than)]

    def _resumed(self, current: Path, wanted: Wanted) -> dict[str, int]:
        """Keep of a pass that was cut short the scores it made, and return them; what failed is to be made again."""
        had: dict[str, int] = {}
        if not current.exists():
            return had
        with replacing(current) as file:
            for text, line in read_lines(current, _parsed):
                bit = wanted.bit(line)
                if bit and not had.get(line["trial"], 0) & bit:
                    had[intern(line["trial"])] = had.get(line["trial"], 0) | bit
                    file.write(text)
        return had

    def _settle(self, current: Path, wanted: Wanted, *, missing: bool) -> None:
        """Put the lines of a pass that has ended in place of those they score again."""
        made: dict[str, int] = {}
        if missing:
            for line in read_lines(current, orjson.loads):
                bit = wanted.bits.get((line["metric"], line["judge"], _repetition(line)), 0)
                made[intern(line["trial"])] = made.get(line["trial"], 0) | bit

        def stays(line: Mapping[str, Any]) -> bool:
            if (line["metric"], line["judge"]) not in wanted.digests:
                return True
            return missing and bool(wanted.bit(line) & ~made.get(line["trial"], 0))

        with replacing(self.path) as file:
            file.writelines(text for text, line in read_lines(self.path, _parsed) if stays(line))
            file.writelines(read_lines(current, bytes))
        current.unlink()


def _parsed(line: bytes) -> _Line:
    return line, orjson.loads(line)


def _repetition(line: Mapping[str, Any]) -> int:
    return int(line["judgement"]["repetition"]) if line["judgement"] else 1
