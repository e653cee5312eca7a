"""The scores of a run, made in passes. An interrupted pass keeps its scores and continues when it is repeated.

A pass writes to a file of its own. When it ends, its scores replace the earlier ones of the same scorers. Every line
has the digest of its scorer, so that scores of another version of a scorer are never taken for scores of this one.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from itertools import chain
from pathlib import Path
from shutil import copyfileobj
from typing import NamedTuple, TypeAlias

import attrs
import orjson

from keval.files import explained, open_added, open_kept, read_lines, replacing, write_all
from keval.records.scores import ScoreLine, Scorer
from keval.records.trial import Trial, TrialKey
from keval.store.finished import FinishedTrials, Ranking
from keval.store.index import Entry, IndexFile
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
        # A score without a value that no model was asked for costs nothing to make again: it may have one now.
        unasked = data.get("value") is None and (data.get("judgement") or {}).get("model_calls") == 0
        failed = data.get("failure") is not None or unasked
        return cls(text, trial, slot, data.get("digest", ""), failed)


def trial_of(line: bytes) -> str:
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
        # Sorted as texts, because a metric has `None` in place of a judge, which has no order.
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
    """Which scores trials have that a spec wants, as bits; compact for `trials`, which may be a million."""

    def __init__(self, trials: FinishedTrials) -> None:
        self._trials, self._bits = trials, [0] * len(trials)
        self._values: dict[int, int] = {}
        # Trials that have finished since `trials` was read have no place there.
        self._others: dict[str, int] = {}

    def __bool__(self) -> bool:
        return bool(self._bits or self._others)

    def of(self, trial: TrialKey) -> int:
        """Return the scores that a trial has."""
        place = self._trials.place(trial)
        return self._others.get(trial.id, 0) if place is None else self._bits[place]

    def add(self, trial: TrialKey, bits: int) -> None:
        """Note further scores of a trial."""
        place, found = self._trials.place(trial), self.of(trial) | bits
        if place is None:
            self._others[trial.id] = found
        else:
            self._bits[place] = self._values.setdefault(found, found)  # one object for all that have the same


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
    last, begins = "", _NOTHING

    def entry(line: bytes) -> int | None:
        nonlocal last, begins
        # Most lines follow one of the same trial, and comparing bytes spares parsing them.
        if line.startswith(begins) or (trial := trial_of(line)) == last:
            return None
        # Up to the quotation mark after the id, or the id `a/1` would be found in `a/10`.
        last, begins = trial, line[: line.find(b'",', len(_FIRST)) + 2]
        if b"\\" in begins or not line.startswith(_FIRST):
            begins = _NOTHING
        return ranking.of_line(orjson.loads(line)) << 1

    return entry


@attrs.frozen
class ScoresFile:
    """scores.jsonl of a run, and the files of passes that have not ended."""

    path: Path

    def read(self, note: Callable[[bytes], object] | None = None) -> Iterator[ScoreLine]:
        """Read the scores one by one: those of passes that have ended, or of the first pass while none has.

        Each line is given to `note`.
        """
        read = read_score if note is None else lambda line: (note(line), read_score(line))[1]
        return chain.from_iterable(read_lines(file, read) for file in self._counting())

    def files(self) -> list[Path]:
        """Return the files that have scores: that of passes that have ended, then those of passes that have not."""
        return [*([self.path] if self.path.exists() else ()), *self._unfinished()]

    def indexes(self, ranking: Ranking) -> list[IndexFile]:
        """Return the indexes of the files whose scores are the run's."""
        return [self._index(file, ranking) for file in self._counting()]

    def complete_index(self, ranking: Ranking) -> None:
        """Write the index of scores.jsonl, if that has none; the run has to be locked. Raises RunError."""
        self._index(self.path, ranking).complete()

    @contextmanager
    def scoring(self, spec: ScoringSpec, trials: FinishedTrials, *, missing: bool = False) -> Iterator[Pass]:
        """Score in a pass; an interrupted pass with the same key is continued.

        With `missing`, only scores that are missing or failed are made. Scores of others than the run's `trials` so far
        are held for none.
        """
        if not self.path.exists():
            # If the run's own first pass was interrupted, its scores are the run's until it is continued.
            for unfinished in self._unfinished(spec)[:1]:
                with replacing(self.path) as scores:
                    scores.writelines(read_lines(unfinished, bytes))
        current, made = self._current(spec), MadeScores(trials)
        self._resume(current, spec, made, trials)
        for line in read_lines(self.path, _Line.read) if missing else ():
            if line.trial in trials and (bit := spec.bit(line)):
                made.add(line.trial, bit)
        with explained(self.path):
            # Without a buffer, so that a killed process loses no score; the sync at the end is for power cuts.
            file = os.fdopen(open_added(current), "ab", buffering=0)
        with file:

            def write(lines: bytes) -> None:
                with explained(self.path):
                    write_all(file, lines)

            yield Pass(write, made, spec)
            with explained(self.path):
                os.fsync(file.fileno())
        self._settle(current, spec, trials, missing=missing)

    def _index(self, file: Path, ranking: Ranking) -> IndexFile:
        return IndexFile(file, ranking.digest, _entries(ranking))

    def _counting(self) -> list[Path]:
        """Return the files whose scores are the run's."""
        return [self.path] if self.path.exists() else self._unfinished()

    def _current(self, spec: ScoringSpec) -> Path:
        return self.path.with_name(f".scores.{spec.key}.jsonl")

    def _unfinished(self, other_than: ScoringSpec | None = None) -> list[Path]:
        found = sorted(self.path.parent.glob(".scores.*.jsonl"))
        return [file for file in found if other_than is None or file != self._current(other_than)]

    def _resume(self, current: Path, spec: ScoringSpec, made: MadeScores, trials: FinishedTrials) -> None:
        """Keep and note the scores of an interrupted pass, but for failed ones."""
        if not current.exists():
            return
        with replacing(current) as file:
            for line in read_lines(current, _Line.read):
                bit = spec.bit(line)
                # A disk may lose a trial that it said it had synced; what is run again has another answer to score.
                if bit & ~made.of(line.trial) and line.trial in trials:
                    made.add(line.trial, bit)
                    file.write(line.text)

    def _settle(self, current: Path, spec: ScoringSpec, trials: FinishedTrials, *, missing: bool) -> None:
        """Replace the earlier scores of the pass's scorers by its own, when it has ended.

        If only missing scores were made, the earlier ones of the `trials` that the run had before stay.
        """
        again = MadeScores(trials)
        for line in read_lines(current, _Line.read) if missing and self.path.exists() else ():
            if line.trial in trials:
                again.add(line.trial, spec.bits.get(line.slot, 0))

        def stays(line: _Line) -> bool:
            if line.slot[:2] not in spec.digests:
                return True
            return missing and line.trial in trials and bool(spec.bit(line) & ~again.of(line.trial))

        with replacing(self.path) as file:
            file.writelines(line.text for line in read_lines(self.path, _Line.read) if stays(line))
            with explained(current), open_kept(current) as made:
                copyfileobj(made, file)
        # If keval is killed before this, the pass is ended once more from its own file, with the same result.
        current.unlink()
