"""The scores of a run, made in passes. An interrupted pass keeps its scores and continues when it is repeated.

A pass writes to a file of its own. When it ends, its scores replace the earlier ones of the same scorers. Every line
has the digest of its scorer, so that scores of another version of a scorer are never taken for scores of this one.
"""

from __future__ import annotations

import hashlib
import os
from array import array
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from sys import intern
from typing import Any, NamedTuple, TypeAlias

import attrs
import orjson

from keval.files import LineFile, explained, read_lines, read_sorted, replacing, undamaged, write_all
from keval.records.scores import ScoreLine, Scorer
from keval.store.serialization import read_score

_FIRST = b'{"trial":"'

_Slot: TypeAlias = tuple[str, str | None, int]
"""A metric, or a rubric with its judge, and the judge's repetition."""


class _Line(NamedTuple):
    """A line, and which score it is."""

    text: bytes
    trial: str
    slot: _Slot
    digest: str
    failed: bool

    @classmethod
    def read(cls, text: bytes) -> _Line:
        data = orjson.loads(text)
        repetition = int(data["judgement"]["repetition"]) if data.get("judgement") else 1
        slot = (data["metric"], data.get("judge"), repetition)
        return cls(text, intern(data["trial"]), slot, data.get("digest", ""), data.get("failure") is not None)


def _trial_of(line: bytes) -> str:
    """Return whose score a line is, without reading the rest of it if it stands first, as keval writes it."""
    if line.startswith(_FIRST):
        name = line[len(_FIRST) : line.find(b'"', len(_FIRST))]
        if b"\\" not in name:
            return name.decode()
    return str(orjson.loads(line)["trial"])


@attrs.frozen
class ScoringSpec:
    """The scores that a pass makes of each trial: the digest of each scorer, and how often it grades an answer."""

    digests: Mapping[Scorer, str]
    repetitions: Mapping[Scorer, int]

    @property
    def key(self) -> str:
        """Identifies the pass among those of other scorers or other versions of them."""
        return hashlib.sha256(repr(sorted(self.digests.items(), key=str)).encode()).hexdigest()[:16]

    @cached_property
    def bits(self) -> dict[_Slot, int]:
        """A bit for each score of a trial, by scorer and repetition of the judge."""
        slots = [
            (*scorer, repetition) for scorer, times in self.repetitions.items() for repetition in range(1, times + 1)
        ]
        return {slot: 1 << number for number, slot in enumerate(slots)}

    def bit(self, line: _Line) -> int:
        """Return the bit of a score; 0 for a score that the spec does not want, or that failed."""
        if line.digest != self.digests.get(line.slot[:2]) or line.failed:
            return 0
        return self.bits.get(line.slot, 0)


@attrs.frozen
class Pass:
    """A scoring pass in progress: `write` keeps lines; `had` are the scores that exist already, as bits by trial."""

    write: Callable[[bytes], None]
    had: dict[str, int]
    _spec: ScoringSpec

    def lacks(self, trial: str, metric: str, judge: str | None, repetition: int) -> bool:
        """Return whether a score is wanted and missing."""
        return bool(~self.had.get(trial, 0) & self._spec.bits.get((metric, judge, repetition), 0))

    def note(self, lines: Iterable[ScoreLine]) -> None:
        """Note that these scores exist, also if they failed, for a trial that is scored in two steps."""
        for line in lines:
            repetition = line.judgement.repetition if line.judgement else 1
            self.had[line.trial] = self.had.get(line.trial, 0) | self._spec.bits.get((*line.scorer, repetition), 0)


@attrs.frozen
class ScoresFile:
    """scores.jsonl of a run, and the files of passes that have not ended."""

    path: Path

    def read(self) -> Iterator[ScoreLine]:
        """Read the scores one by one: those of passes that have ended, or of the first pass while none has."""
        return chain.from_iterable(read_lines(file, read_score) for file in self._counting())

    def read_sorted(self, rank: Callable[[Mapping[str, Any]], int]) -> Iterator[ScoreLine]:
        """Read the same scores trial by trial, by the rank of the trial, which is told from any of its lines."""
        last, found = "", 0

        def rank_of(line: bytes) -> int:
            nonlocal last, found
            if (trial := _trial_of(line)) != last:
                last, found = trial, rank(orjson.loads(line))
            return found

        return chain.from_iterable(read_sorted(file, rank_of, read_score) for file in self._counting())

    def files(self) -> list[Path]:
        """Return the files that have scores: that of passes that have ended, then those of passes that have not."""
        return [*([self.path] if self.path.exists() else ()), *self._unfinished()]

    def by_trial(self) -> Callable[[str], Iterator[ScoreLine]]:
        """Return a function that reads the scores of a trial. It holds their positions, and no score, in memory."""
        files = self._counting()
        # The scores of a trial mostly follow each other, so that one range of lines tells of many.
        places: dict[str, list[tuple[int, range]]] = {}
        lines: list[LineFile] = []
        for number, file in enumerate(files):
            starts, start = array("Q"), 0
            for trial, block in groupby(read_lines(file, lambda line: (_trial_of(line), len(line))), itemgetter(0)):
                first = len(starts)
                for _, size in block:
                    starts.append(start)
                    start += size
                places.setdefault(trial, []).append((number, range(first, len(starts))))
            lines.append(LineFile(file, starts))

        def read(trial: str) -> Iterator[ScoreLine]:
            for number, position in ((number, place) for number, block in places.get(trial, ()) for place in block):
                with undamaged(f"{files[number]}:{position + 1}"):
                    yield read_score(lines[number][position])

        return read

    @contextmanager
    def scoring(self, spec: ScoringSpec, *, missing: bool = False, of: Container[str] | None = None) -> Iterator[Pass]:
        """Score in a pass; an interrupted pass with the same key is continued.

        With `missing`, only scores that are missing or failed are made. Scores of other trials than those `of` the run
        so far, by their ids, are held for none.
        """
        if not self.path.exists():
            # If the run's own first pass was interrupted, its scores are the run's until it is continued.
            for unfinished in self._unfinished(spec)[:1]:
                with replacing(self.path) as scores:
                    scores.writelines(read_lines(unfinished, bytes))
        current = self._current(spec)
        had = self._resumed(current, spec, of)
        if missing:
            for line in read_lines(self.path, _Line.read):
                if (bit := spec.bit(line)) and (of is None or line.trial in of):
                    had[line.trial] = had.get(line.trial, 0) | bit
        with explained(self.path):
            file = current.open("ab", buffering=0)
        with file:

            def write(lines: bytes) -> None:
                with explained(self.path):
                    write_all(file, lines)

            yield Pass(write, had, spec)
            with explained(self.path):
                os.fsync(file.fileno())
        self._settle(current, spec, missing=missing)

    def _counting(self) -> list[Path]:
        """Return the files whose scores are the run's."""
        return [self.path] if self.path.exists() else self._unfinished()

    def _current(self, spec: ScoringSpec) -> Path:
        return self.path.with_name(f".scores.{spec.key}.jsonl")

    def _unfinished(self, other_than: ScoringSpec | None = None) -> list[Path]:
        found = sorted(self.path.parent.glob(".scores.*.jsonl"))
        return [file for file in found if other_than is None or file != self._current(other_than)]

    def _resumed(self, current: Path, spec: ScoringSpec, of: Container[str] | None) -> dict[str, int]:
        """Keep the scores of an interrupted pass, but for failed ones, and return them."""
        had: dict[str, int] = {}
        if not current.exists():
            return had
        with replacing(current) as file:
            for line in read_lines(current, _Line.read):
                bit = spec.bit(line)
                if bit and not had.get(line.trial, 0) & bit and (of is None or line.trial in of):
                    had[line.trial] = had.get(line.trial, 0) | bit
                    file.write(line.text)
        return had

    def _settle(self, current: Path, spec: ScoringSpec, *, missing: bool) -> None:
        """Replace the earlier scores of the pass's scorers by its own, when it has ended."""
        made: dict[str, int] = {}
        if missing:
            for line in read_lines(current, _Line.read):
                made[line.trial] = made.get(line.trial, 0) | spec.bits.get(line.slot, 0)

        def stays(line: _Line) -> bool:
            if line.slot[:2] not in spec.digests:
                return True
            return missing and bool(spec.bit(line) & ~made.get(line.trial, 0))

        with replacing(self.path) as file:
            file.writelines(line.text for line in read_lines(self.path, _Line.read) if stays(line))
            file.writelines(read_lines(current, bytes))
        current.unlink()
