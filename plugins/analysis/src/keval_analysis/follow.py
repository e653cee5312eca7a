"""Following a run as it grows: new trials and scores are read as they come, and only counts and sums are kept."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import attrs

from keval.errors import RunError
from keval.files import open_kept, undamaged
from keval.records.manifest import Manifest, is_current
from keval.records.scores import ScoreLine
from keval.records.trial import Trial
from keval.store.run import Run
from keval.store.serialization import read_score
from keval_analysis.failure_tally import FailureTally
from keval_analysis.findings.effects import OfArm
from keval_analysis.findings.summary import ArmTrials, Cost, JudgingTotal, Summary
from keval_analysis.live_state import ErrorCount, error_counts, refusal_kind
from keval_analysis.stats.observations import numbered
from keval_analysis.stats.summarise import Summariser


@attrs.frozen
class ArmProgress(OfArm):
    """How far an arm has come. `retried` trials needed more than one attempt.

    `planned` trials are known unless the answers of an agent were recorded. Of the `scores`, there will be `expected`
    if no further trial fails.
    """

    planned: int | None
    finished: int
    failed: int
    retried: int
    scores: int
    expected: int | None


@attrs.frozen
class RunProgress:
    """How far a run has come.

    `failures` are failed trials by `stage: kind`, `retries` failed attempts that were repeated, by the same, `refusals`
    model requests that were sent again, by status, and `unscored` failures of scorers, by kind. `rate` is trials per
    second over the last minute, and `seconds_left` what the trials that are left take at that rate. `cost` is that of
    trials and judgements so far.
    """

    planned: int
    finished: int
    failed: int
    retried: int
    arms: tuple[ArmProgress, ...]
    failures: tuple[ErrorCount, ...]
    retries: tuple[ErrorCount, ...]
    refusals: tuple[ErrorCount, ...]
    unscored: tuple[ErrorCount, ...]
    rate: float | None
    seconds_left: float | None
    cost: Cost


@attrs.define
class Counts:
    """What is counted of a run beside its tallies: scores by arm and judge (`None`: metrics), and what went wrong."""

    scores: Counter[tuple[str, str, str | None]] = attrs.field(factory=Counter)
    failures: FailureTally = attrs.field(factory=FailureTally)
    retries: FailureTally = attrs.field(factory=FailureTally)
    refusals: FailureTally = attrs.field(factory=FailureTally)
    unscored: FailureTally = attrs.field(factory=FailureTally)


_FAULTS = ("failures", "retries", "refusals", "unscored")


def _arm(manifest: Manifest, total: ArmTrials, counts: Counts) -> ArmProgress:
    recorded = any(entry.recording for entry in manifest.agents.values())
    count = len(manifest.agents) * len(manifest.conditions)
    planned = None if recorded else round(manifest.trials / count)
    each = sum(entry.repetitions for entry in manifest.scorers)
    # A failed trial is not scored.
    expected = None if planned is None else each * (max(planned, total.trials) - total.failed)
    scores = sum(counts.scores[total.agent, total.condition, judge] for judge in (None, *manifest.judges))
    return ArmProgress(
        total.agent, total.condition, planned, total.trials, total.failed, total.retried, scores, expected
    )


_REMEMBERED = 4096
"""Bytes before the position that are compared; lines end with what is another trial's in any other file."""


@attrs.define
class Tail:
    """Reads the lines of a file that grows. A last line without its newline is left for later.

    `count` lines were read.
    """

    path: Path
    count: int = attrs.field(default=0, init=False)
    _position: int = attrs.field(default=0, init=False)
    _before: bytes = attrs.field(default=b"", init=False)

    def size(self) -> int:
        """Return how many bytes there are; 0 if there is no such file. Raises RunError."""
        with self._readable(), suppress(FileNotFoundError):
            return self.path.stat().st_size
        return 0

    def goes_on(self, path: Path | None = None) -> bool:
        """Return whether the file, or another one, still begins with what was read. Raises RunError."""
        if not self._position:
            return True
        with self._readable(), suppress(FileNotFoundError), open_kept(path or self.path) as file:
            file.seek(self._position - len(self._before))
            return file.read(len(self._before)) == self._before
        return False

    def lines(self, until: int | None = None) -> Iterator[bytes]:
        """Yield the complete lines that were not read yet, without their newlines, up to the byte `until`.

        A line counts as read when the next one is asked for. Raises RunError.
        """
        file = None
        with self._readable(), suppress(FileNotFoundError):
            file = open_kept(self.path)
        if file is None:
            return
        with file:
            file.seek(self._position)
            while until is None or self._position < until:
                with self._readable():
                    line = file.readline()
                if not line.endswith(b"\n"):
                    return
                yield line[:-1]
                self.count += 1
                self._position += len(line)
                self._before = (self._before + line)[-_REMEMBERED:]

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise RunError(f"{self.path} cannot be read: {error.strerror or error}") from error


class ReplacedError(Exception):
    """Something that was read is there no more, or has another meaning now: the run must be read anew."""


class Reading:
    """Reads what a run has, and then what is added to it.

    Raises RunError: the run cannot be read.
    """

    def __init__(self, path: Path) -> None:
        # Before the manifest is read: if it is replaced meanwhile, the next look notices.
        self._stamp = _stamp(path)
        self.run = Run(path)
        self.manifest = self.run.manifest
        self.finished = 0
        self._numbers: dict[str, int] = {}
        self._summariser = Summariser(self.manifest, self._numbers)
        self._scorers = {entry.scorer: entry for entry in self.manifest.scorers}
        self._counts = Counts()
        self._trials = Tail(self.run.trials_file)
        files = self.run.scores_file.files()
        self._scores = {file: Tail(file) for file in files}
        # Trials with scores of passes that have ended, if there is a pass that has not: those scores count until then.
        self._settled: set[str] | None = set() if self._has_settled and len(files) > 1 else None

    def advance(self) -> bool:
        """Read what is new, and return whether anything is. Raises ReplacedError and RunError."""
        # First, as a manifest that has changed gives what follows another meaning.
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
        manifest, counts = self.manifest, self._counts
        trials = self._summariser.trials()
        spent: list[ArmTrials | JudgingTotal] = [*trials, *self._summariser.judging()]
        arms = [_arm(manifest, total, counts) for total in trials]
        finished = sum(arm.finished for arm in arms)
        return RunProgress(
            planned=manifest.trials,
            finished=finished,
            failed=sum(arm.failed for arm in arms),
            retried=sum(arm.retried for arm in arms),
            arms=tuple(arms),
            **{name: error_counts(getattr(counts, name)) for name in _FAULTS},
            rate=rate,
            seconds_left=max(0, manifest.trials - finished) / rate if rate else None,
            cost=sum((each.cost for each in spent), start=Cost()),
        )

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
        self._stamp, self.manifest, self._summariser.observed.manifest = stamp, manifest, manifest
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
        if not self._numbers:
            self._numbers |= numbered(self.run.samples.ids)  # trials come in the order in which they finish
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
        self._summariser.add_score(line)
        self._counts.scores[line.agent, line.condition, line.judge] += 1
        if line.failure is not None:
            self._counts.unscored.add(line.failure.kind, line.failure.message)


def _lasting(manifest: Manifest) -> Manifest:
    """Return what a manifest says that sums depend on."""
    return attrs.evolve(manifest, trials=0, elapsed=None, stopped=None, sealed={}, replay=None, resumed=())


def _stamp(path: Path) -> tuple[int, int, int]:
    """Return what tells one manifest.json from the one that replaces it. Raises RunError."""
    try:
        found = (path / "manifest.json").stat()
    except OSError as error:
        raise RunError(f"{path} cannot be followed: {error.strerror}; was the run removed?") from error
    return found.st_mtime_ns, found.st_ino, found.st_size


_WINDOW = 60.0
"""Seconds that a rate is taken over."""
_SHORTEST = 3.0
"""Seconds from which on a rate says something."""
_TRIES = 5
"""How often a run is read anew because its files are replaced while they are read."""


class Follower:
    """Reads a run as it grows: each `advance` reads what is new. Memory does not grow with the number of trials.

    A run is read anew when its manifest changes in more than what a run learns at its end, or when trials or scores
    that were read are there no more, as after `keval resume --retry-failed`. `clock` returns seconds; only differences
    between its values are used. Use it in one thread at a time.
    """

    def __init__(self, run: Run | Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.path = run if isinstance(run, Path) else run.path
        self._clock = clock
        self._version = 0
        self._reading: Reading | None = None
        self._told: tuple[int, Summary] | None = None
        self._finished: deque[tuple[float, int]] = deque()

    @property
    def version(self) -> int:
        """A number that rises whenever something new was read."""
        return self._version

    @property
    def manifest(self) -> Manifest:
        """The manifest as it stands. Raises RunError."""
        return self._read.manifest

    def advance(self) -> bool:
        """Read what is new, and return whether anything is.

        Raises RunError: the run cannot be read, is damaged, or was removed.
        """
        for left in reversed(range(_TRIES)):
            is_new = self._reading is None
            try:
                if self._reading is None:
                    self._reading = Reading(self.path)
                found = self._reading.advance() or is_new
            except ReplacedError:
                self._forget()
            except RunError:
                # While a run is resumed, one file may already speak of what another one does not have yet.
                is_torn = left > 0 and self._reading is not None and self._reading.is_outdated()
                self._forget()
                if not is_torn:
                    raise
            else:
                self._version += found
                now = self._clock()
                self._finished.append((now, self._reading.finished))
                # The first entry stays until the second is old enough, so that the rate is over the whole window.
                while len(self._finished) > 1 and now - self._finished[1][0] > _WINDOW:
                    self._finished.popleft()
                return found
        raise RunError(f"{self.path} cannot be read: its files are replaced again and again; try later")

    def progress(self) -> RunProgress:
        """Return how far the run has come, by what was read; this takes no statistics. Raises RunError."""
        reading, rate = self._read, None
        if self._finished:
            (began, before), (now, finished) = self._finished[0], self._finished[-1]
            rate = (finished - before) / (now - began) if now - began >= _SHORTEST else None
        return reading.progress(rate)

    def summary(self) -> Summary:
        """Return the summary of what was read, with effects and their intervals. Raises RunError.

        Gates are not decided, and what people's reviews come to is left out.
        """
        if self._told is None or self._told[0] != self._version:
            self._told = (self._version, self._read.summary())
        return self._told[1]

    @property
    def _read(self) -> Reading:
        if self._reading is None:
            self.advance()
        assert self._reading is not None  # noqa: S101 - for mypy: advance() has made it
        return self._reading

    def _forget(self) -> None:
        self._reading = None
        self._finished.clear()
