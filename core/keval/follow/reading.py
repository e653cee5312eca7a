"""Reading a run that grows, from its beginning on, as long as nothing that was read is replaced."""

from __future__ import annotations

from pathlib import Path

import attrs

from keval.errors import RunError
from keval.follow.progress import Counts, RunProgress, progress_of
from keval.manifest import Manifest
from keval.records import Trial
from keval.scores import ScoreLine
from keval.stats.summarise import Summariser, is_current
from keval.store.files import undamaged
from keval.store.jsonl import read_score
from keval.store.run import Run
from keval.store.tail import Tail
from keval.store.watched import refusal_kind
from keval.summary import Summary

__all__ = ["Reading", "ReplacedError"]


class ReplacedError(Exception):
    """Something that was read is there no more, or has another meaning now: the run must be read anew."""


class Reading:
    """Reads what a run has, and then what is added to it.

    Raises RunError: the run cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._stamp = _stamp(path)
        self.run = Run(path)
        self.manifest = self.run.manifest
        self.finished = 0
        self._summariser = Summariser(self.manifest)
        self._scorers = {entry.scorer: entry for entry in self.manifest.scorers}
        self._counts = Counts()
        self._trials = Tail(self.run.trials_file)
        files = self.run.scores_file.files()
        self._scores = {file: Tail(file) for file in files}
        # Trials with scores of passes that have ended, if there is a pass that has not: those scores count until then.
        self._settled: set[str] | None = set() if self._has_settled and len(files) > 1 else None

    def advance(self) -> bool:
        """Read what is new, and return whether anything is. Raises ReplacedError and RunError."""
        found = self._read_manifest()
        self._find_scores()
        if not self._trials.goes_on():
            raise ReplacedError
        # Scores that were written by now are of trials that are read before them.
        ends = {file: tail.size() for file, tail in self._scores.items()}
        for line in self._trials.lines():
            with undamaged(f"{self._trials.path}:{self._trials.count + 1}"):
                self._add_trial(self.run.read_trial(line))
            found = True
        for file, tail in self._scores.items():
            for line in tail.lines(ends[file]):
                with undamaged(f"{file}:{tail.count + 1}"):
                    self._add_score(read_score(line), file)
                found = True
        return found

    def is_outdated(self) -> bool:
        """Return whether the manifest was written anew since it was read. Raises RunError."""
        return self._stamp != _stamp(self.run.path)

    def progress(self, rate: float | None) -> RunProgress:
        """Return how far the run has come, at a rate of so many trials per second."""
        return progress_of(self.manifest, self._summariser.trials(), self._summariser.judging(), self._counts, rate)

    def summary(self) -> Summary:
        """Return the summary of what was read."""
        return self._summariser.summary()

    @property
    def _has_settled(self) -> bool:
        return self.run.scores_file.path in self._scores

    def _read_manifest(self) -> bool:
        """Read the manifest again if it was written anew. A run learns at its end, too, how long it took."""
        stamp = _stamp(self.run.path)
        if stamp == self._stamp:
            return False
        manifest = Run(self.run.path).manifest
        if _lasting(manifest) != _lasting(self.manifest):
            raise ReplacedError
        self._stamp, self.manifest, self._summariser.manifest = stamp, manifest, manifest
        return True

    def _find_scores(self) -> None:
        """Find out which files have scores by now, and whether they still have what was read of them."""
        settled, files = self.run.scores_file.path, self.run.scores_file.files()
        if files[:1] == [settled] and not self._has_settled and len(self._scores) == 1:
            # The first pass has ended: its file becomes that of all scores, and is removed a moment later.
            ((file, tail),) = self._scores.items()
            if tail.goes_on(settled) and files == [settled]:
                tail.path = settled
                self._scores = {settled: tail}
                return
            if tail.goes_on(settled) and tail.goes_on() and files == [settled, file]:
                return
        if any(file not in files or not tail.goes_on() for file, tail in self._scores.items()):
            raise ReplacedError
        added = [file for file in files if file not in self._scores]
        if added and self._scores and settled in files:
            raise ReplacedError  # scores that were read may be repeated there
        self._scores |= {file: Tail(file) for file in added}

    def _add_trial(self, trial: Trial) -> None:
        self._summariser.add_trial(trial)
        self.finished += 1
        counts = self._counts
        if trial.failure is not None:
            counts.failures.add(f"{trial.failure.stage}: {trial.failure.kind}", trial.failure.message)
        for attempt in trial.attempts:
            counts.retries.add(f"{attempt.failure.stage}: {attempt.failure.kind}", attempt.failure.message)
        for transcript in (trial.transcript, *(attempt.transcript for attempt in trial.attempts)):
            for refusal in transcript.refusals if transcript else ():
                counts.refusals.add(refusal_kind(refusal.status), refusal.message)

    def _add_score(self, line: ScoreLine, file: Path) -> None:
        if self._settled is not None:
            if file == self.run.scores_file.path:
                self._settled.add(line.trial)
            elif line.trial in self._settled:
                return
        if not is_current(line, self._scorers.get(line.scorer)):
            return
        self._summariser.add_scores([line])
        self._counts.scores[line.agent, line.condition, line.judge] += 1
        if line.failure is not None:
            self._counts.unscored.add(line.failure.kind, line.failure.message)


def _lasting(manifest: Manifest) -> Manifest:
    """Return what a manifest says that sums depend on."""
    return attrs.evolve(manifest, trials=0, elapsed=None, stopped=None, replay=None, resumed=())


def _stamp(path: Path) -> tuple[int, int, int]:
    """Return what tells one manifest.json from the one that replaces it. Raises RunError."""
    try:
        found = (path / "manifest.json").stat()
    except OSError as error:
        raise RunError(f"{path} cannot be followed: {error.strerror}; was the run removed?") from error
    return found.st_mtime_ns, found.st_ino, found.st_size
