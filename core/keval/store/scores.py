"""The scores of a run, made in passes. An interrupted pass keeps its scores and continues when it is repeated.

A pass writes to a file of its own. When it ends, its scores replace the earlier ones of the same scorers. Every line
has the digest of its scorer, so that scores of another version of a scorer are never taken for scores of this one.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import NamedTuple, TypeAlias

import attrs
import orjson

from keval.files import DAMAGE, LineFile, explained, read_lines, replacing, write_all
from keval.records.scores import ScoreLine, Scorer
from keval.records.trial import Trial, TrialKey
from keval.store.finished import FinishedTrials, Ranking
from keval.store.index import Entry, Index, complete_index, read_index
from keval.store.serialization import read_score

_FIRST = b'{"trial":"'
_NOTHING = b"\n"
"""With which no line begins."""

_Slot: TypeAlias = tuple[str, str | None, int]
"""A metric, or a rubric with its judge, and the judge's repetition."""


class _Line(NamedTuple):
    """A line, and which score it is."""

    text: bytes
    trial: TrialKey
    slot: _Slot
    digest: str
    failed: bool

    @classmethod
    def read(cls, text: bytes) -> _Line:
        data = orjson.loads(text)
        repetition = int(data["judgement"]["repetition"]) if data.get("judgement") else 1
        slot = (data["metric"], data.get("judge"), repetition)
        trial = TrialKey(data["trial"], data["agent"], data["condition"], data["sample"], data["repetition"])
        return cls(text, trial, slot, data.get("digest", ""), data.get("failure") is not None)


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


class MadeScores:
    """Which scores trials have that a spec wants, as bits; a byte for each finished trial if it has all or none."""

    def __init__(self, spec: ScoringSpec, trials: FinishedTrials) -> None:
        self._trials = trials
        self._every = sum(spec.bits.values())
        self._all = bytearray(len(trials))
        self._some: dict[str, int] = {}
        self._any = False

    def __bool__(self) -> bool:
        return self._any

    def of(self, trial: TrialKey) -> int:
        """Return the scores that a trial has."""
        if (some := self._some.get(trial.id)) is not None:
            return some
        place = self._trials.place(trial)
        return self._every if place is not None and self._all[place] else 0

    def add(self, trial: TrialKey, bits: int) -> None:
        """Note further scores of a trial."""
        found, self._any = self.of(trial) | bits, True
        place = self._trials.place(trial) if found == self._every else None
        if place is None:
            self._some[trial.id] = found
        else:
            self._all[place] = 1
            self._some.pop(trial.id, None)


@attrs.frozen
class Pass:
    """A scoring pass in progress: `write` keeps lines; `made` are the scores that exist already."""

    write: Callable[[bytes], None]
    made: MadeScores
    _spec: ScoringSpec

    def lacks(self, trial: Trial, metric: str, judge: str | None, repetition: int) -> bool:
        """Return whether a score is wanted and missing."""
        made = self.made.of(trial.key) if self.made else 0
        return bool(~made & self._spec.bits.get((metric, judge, repetition), 0))

    def note(self, trial: Trial, lines: Iterable[ScoreLine]) -> None:
        """Note that these scores of a trial exist, also if they failed, for one that is scored in two steps."""
        for line in lines:
            repetition = line.judgement.repetition if line.judgement else 1
            self.made.add(trial.key, self._spec.bits.get((*line.scorer, repetition), 0))


def _entries(ranking: Ranking) -> Entry:
    """Return what reads the entries of scores for an index: one for those of a trial that follow each other."""
    trial, begins = None, _NOTHING

    def entry(line: bytes) -> int | None:
        nonlocal trial, begins
        if line.startswith(begins):
            return None
        data = orjson.loads(line)
        if data["trial"] == trial:
            return None
        trial = data["trial"]
        # As keval writes it, a line says first of which trial it is.
        begins = line[: line.find(b',"sample":') + 1] if line.startswith(_FIRST) else b""
        begins = begins or _NOTHING
        return ranking.of_line(data) << 1

    return entry


@attrs.frozen(eq=False)
class ScoresByTrial:
    """Reads the scores of trials. Where they are is known by the index of each file."""

    _ranking: Ranking
    _files: Sequence[tuple[LineFile, Index]]

    def read(self) -> Iterator[ScoreLine]:
        """Read all scores, in the order of trials. Raises RunError."""
        for lines, index in self._files:
            for start in index.starts:
                yield from _block(lines, start >> 1)

    def of(self, trial: str) -> Iterator[ScoreLine]:
        """Read the scores of a trial. Raises RunError."""
        for rank in self._ranking.named(trial):
            for lines, index in self._files:
                for place in index.between(rank, rank + 1):
                    yield from _block(lines, index.starts[place] >> 1)


def _block(lines: LineFile, start: int) -> Iterator[ScoreLine]:
    """Read the scores of one trial that follow each other, the first of which begins at a byte. Raises RunError."""
    trial = ""
    while (line := lines.at(start)).endswith(b"\n"):
        try:
            if trial and trial != _trial_of(line):
                return
            found = read_score(line)
        except DAMAGE as error:
            raise lines.damaged(start, error) from error
        yield found
        trial, start = found.trial, start + len(line)


@attrs.frozen
class ScoresFile:
    """scores.jsonl of a run, and the files of passes that have not ended."""

    path: Path

    def read(self) -> Iterator[ScoreLine]:
        """Read the scores one by one: those of passes that have ended, or of the first pass while none has."""
        return chain.from_iterable(read_lines(file, read_score) for file in self._counting())

    def read_sorted(self, ranking: Ranking) -> Iterator[ScoreLine]:
        """Read the same scores trial by trial, in the order of trials."""
        return self.by_trial(ranking).read()

    def files(self) -> list[Path]:
        """Return the files that have scores: that of passes that have ended, then those of passes that have not."""
        return [*([self.path] if self.path.exists() else ()), *self._unfinished()]

    def by_trial(self, ranking: Ranking) -> ScoresByTrial:
        """Return what reads the scores of a trial. Raises RunError."""
        files = self._counting()
        indexes = [read_index(file, ranking.digest, _entries(ranking), lambda: False) for file in files]
        return ScoresByTrial(ranking, [*zip(map(LineFile, files), indexes, strict=True)])

    def complete_index(self, ranking: Ranking) -> None:
        """Write the index of scores.jsonl, if that has none; the run has to be locked. Raises RunError."""
        complete_index(self.path, ranking.digest, _entries(ranking))

    @contextmanager
    def scoring(
        self,
        spec: ScoringSpec,
        trials: FinishedTrials,
        *,
        missing: bool = False,
        of: Container[TrialKey] | None = None,
    ) -> Iterator[Pass]:
        """Score in a pass; an interrupted pass with the same key is continued. `trials` are those of the run so far.

        With `missing`, only scores that are missing or failed are made. Scores of other trials than those `of` the run
        so far are held for none.
        """
        if not self.path.exists():
            # If the run's own first pass was interrupted, its scores are the run's until it is continued.
            for unfinished in self._unfinished(spec)[:1]:
                with replacing(self.path) as scores:
                    scores.writelines(read_lines(unfinished, bytes))
        current, made = self._current(spec), MadeScores(spec, trials)
        self._resume(current, spec, made, of)
        if missing:
            for line in read_lines(self.path, _Line.read):
                if (bit := spec.bit(line)) and (of is None or line.trial in of):
                    made.add(line.trial, bit)
        with explained(self.path):
            file = current.open("ab", buffering=0)
        with file:

            def write(lines: bytes) -> None:
                with explained(self.path):
                    write_all(file, lines)

            yield Pass(write, made, spec)
            with explained(self.path):
                os.fsync(file.fileno())
        self._settle(current, spec, trials if missing else None)

    def _counting(self) -> list[Path]:
        """Return the files whose scores are the run's."""
        return [self.path] if self.path.exists() else self._unfinished()

    def _current(self, spec: ScoringSpec) -> Path:
        return self.path.with_name(f".scores.{spec.key}.jsonl")

    def _unfinished(self, other_than: ScoringSpec | None = None) -> list[Path]:
        found = sorted(self.path.parent.glob(".scores.*.jsonl"))
        return [file for file in found if other_than is None or file != self._current(other_than)]

    def _resume(self, current: Path, spec: ScoringSpec, made: MadeScores, of: Container[TrialKey] | None) -> None:
        """Keep and note the scores of an interrupted pass, but for failed ones."""
        if not current.exists():
            return
        with replacing(current) as file:
            for line in read_lines(current, _Line.read):
                bit = spec.bit(line)
                if bit & ~made.of(line.trial) and (of is None or line.trial in of):
                    made.add(line.trial, bit)
                    file.write(line.text)

    def _settle(self, current: Path, spec: ScoringSpec, of: FinishedTrials | None) -> None:
        """Replace the earlier scores of the pass's scorers by its own, when it has ended.

        If only missing scores were made, the earlier ones are `of` these trials, but for a few whose trial is gone.
        """
        made = None if of is None else MadeScores(spec, of)
        if of is not None and made is not None and self.path.exists():
            gone = {line.trial.id for line in read_lines(self.path, _Line.read) if line.trial not in of}
            for line in read_lines(current, _Line.read):
                if line.trial in of or line.trial.id in gone:
                    made.add(line.trial, spec.bits.get(line.slot, 0))

        def stays(line: _Line) -> bool:
            if line.slot[:2] not in spec.digests:
                return True
            return made is not None and bool(spec.bit(line) & ~made.of(line.trial))

        with replacing(self.path) as file:
            file.writelines(line.text for line in read_lines(self.path, _Line.read) if stays(line))
            file.writelines(read_lines(current, bytes))
        current.unlink()
