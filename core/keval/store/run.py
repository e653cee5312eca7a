"""A run, for reading: its manifest, summary, samples, trials and scores, each read when it is needed."""

from __future__ import annotations

import hashlib
import os
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakValueDictionary

import attrs
import orjson

from keval.dataset.samples import Samples
from keval.errors import RunError, suggestion, typed
from keval.files import DAMAGE, LineFile, open_kept, read_kept, read_lines, undamaged, unreadable
from keval.records.manifest import Manifest, is_current
from keval.records.scores import ScoreLine
from keval.records.transcript import Transcript, is_sha256
from keval.records.trial import Sample, Trial
from keval.seams import registry
from keval.seams.results import mirror_of, results_folder
from keval.store.finished import FinishedTrials, Ranking
from keval.store.index import Index, IndexFile
from keval.store.lock import fetch_run, is_locked
from keval.store.scores import ScoresFile
from keval.store.serialization import read_manifest, read_sample, read_trial

if TYPE_CHECKING:  # what makes scores does not read them so
    from keval.store.scores_by_trial import ScoresByTrial


_SAMPLES: WeakValueDictionary[tuple[object, ...], Samples] = WeakValueDictionary()
"""The samples of runs that are in use, by their file and its state: whoever reads the same ones shares them."""
_MOST_OF_BLOB = 1 << 30


def open_run(run: str | Path = "latest", root: str | Path = "results") -> Run:
    """Open a run by its path, its id, the start of its id, or `latest`; ids are looked for under `root`.

    Path and `root` may be URLs. Raises RunError: there is no such run, or it is not of this version's format.
    """
    found = find_run(str(run), results_folder(root))
    _ = found.manifest  # raises if it cannot be read
    return found


def find_run(run: str, root: Path) -> Run:
    """Find a run as `open_run` does, without reading it. Raises RunError."""
    if "://" in run and run.rstrip("/").count("/") > 3:  # in a bucket at least
        results, evaluation, run = run.rstrip("/").rsplit("/", 2)
        root = results_folder(results)
        fetch_run(root / evaluation / run)
        if (root / evaluation / run / "manifest.json").is_file():
            return Run(root / evaluation / run)
        raise RunError(f"no run at {results}/{evaluation}/{run}; `{typed('list', '-o', results)}` shows what there is")
    with suppress(OSError):  # a name that is too long for a path may be an id's
        if (Path(run) / "manifest.json").is_file():
            fetch_run(Path(run))
            return Run(Path(run))
    if mirror := mirror_of(root):
        mirror.find(root, run)
    runs = _runs_in(root)
    matching = runs[-1:] if run == "latest" else [found for found in runs if found.id.startswith(run)]
    if len(matching) == 1:
        fetch_run(matching[0].path)
        return matching[0]
    if not matching:
        raise RunError(f"no run {run!r} at that path or under {root}; `{typed('list', '-o', root)}` lists all")
    raise RunError(f"{run!r} is the start of {len(matching)} runs' ids; give more of it")


def list_runs(root: Path) -> list[Run]:
    """Return every run under `root`, oldest first. Raises RunError."""
    if mirror := mirror_of(root):
        mirror.find(root)
    return _runs_in(root)


def _runs_in(root: Path) -> list[Run]:
    manifests = root.glob("*/*/manifest.json")
    try:
        # An id begins with the second of its run, in 15 characters; the rest is random, so its file's time decides.
        found = sorted((path.parent.name[:15], path.stat().st_mtime_ns, path.parent) for path in manifests)
    except OSError as error:
        raise RunError(f"{root} cannot be read: {error.strerror}; choose another results directory with -o") from error
    return [Run(folder) for _, _, folder in found]


@attrs.frozen(slots=False)
class Run:
    """One run on disk, for reading. Creating the object reads nothing.

    Trials and scores are read as they are iterated over, and only their places are in memory. They come repetition by
    repetition, in the order of the dataset and then of the conditions and agents, however they were run.
    """

    path: Path
    noting: Callable[[str], Callable[[bytes], object]] | None = attrs.field(default=None, eq=False, repr=False)
    """Called whenever trials or scores begin to be read, with their file's name; what it returns is given each line."""

    @property
    def id(self) -> str:
        """The run's id: the name of its directory."""
        return self.path.name

    @property
    def trials_file(self) -> Path:
        """Where the trials are, one a line."""
        return self.path / "trials.jsonl"

    @property
    def scores_file(self) -> ScoresFile:
        """Where the scores are, one a line."""
        return ScoresFile(self.path / "scores.jsonl")

    @property
    def reviews_file(self) -> Any:
        """Where people's reviews of answers are, one a line; missing until the first."""
        return _reading("reviews_file")(self)

    @cached_property
    def manifest(self) -> Manifest:
        """What the run was made of. Raises RunError."""
        return read_manifest(self.path / "manifest.json")

    def summary(self, trials: Iterable[Trial] | None = None) -> Any:
        """Summarise the trials, or those given, and scores of the run; gates are not decided. Raises RunError."""
        return _reading("summary")(self, self.trials() if trials is None else trials)

    def written_summary(self) -> Any:
        """Return summary.json as the last command that finished wrote it; `None` without one. Raises RunError."""
        path = self.path / "summary.json"
        return _reading("written_summary")(path) if path.is_file() else None

    def trials(self) -> Iterator[Trial]:
        """Read the finished trials one by one. An incomplete last line, as a power cut leaves it, is ignored."""
        note = self.noting and self.noting(self.trials_file.name)
        for start in self._read_index().starts:
            yield self._trial_at(start >> 1, note)

    def trials_as_finished(self) -> Iterator[Trial]:
        """Read the same trials in the order in which they finished, which is that of the file."""
        return read_lines(self.trials_file, self.read_trial)

    def count_trials(self) -> int:
        """Count the finished trials. Raises RunError."""
        # Not by `index_file`, whose order needs the manifest and all samples to be read.
        known = IndexFile(self.trials_file).count(lambda: self.is_locked)
        return len(self.known_trials) if known is None else known

    def retried_trials(self) -> Iterator[Trial]:
        """Read the failed trials that were set aside and run again."""
        return read_lines(self.path / "retried.jsonl", self.read_trial)

    def scores(self) -> Iterator[ScoreLine]:
        """Read the scores that count, trial by trial: those by the scorers as the manifest has them."""
        return self._current(self._known(self._scores_by_trial().read()))

    def scores_as_made(self) -> Iterator[ScoreLine]:
        """Read the same scores in the order in which they were made, which is that of the file."""
        return self._current(self.all_scores())

    def scores_of(self, trial: str) -> list[ScoreLine]:
        """Read the scores of a trial that count. Raises RunError."""
        return [*self._current(self._scores.of(trial))]

    def reviews(self) -> Any:
        """Return what people said of the answers as they are, and did not replace or withdraw. Raises RunError."""
        return _reading("reviews")(self)

    def labels(self) -> Any:
        """Return all that people said of answers, and which answers were drawn for that. Raises RunError."""
        return _reading("labels")(self)

    def trial(self, id: str) -> Trial:
        """Return a trial by its id. Raises RunError when there is none."""
        return self._trial_at(self._start(id))

    def counterpart(self, trial: Trial, condition: str) -> Trial | None:
        """Return the trial of the same agent, sample and repetition under another condition. Raises RunError."""
        known = self.known_trials
        place = known.place(attrs.evolve(trial.key, condition=condition))
        return None if place is None else self._trial_at(known.index.starts[place] >> 1)

    def trial_line(self, id: str) -> bytes:
        """Return the line of a trial, which is JSON, as it stands in the run. Raises RunError when there is none."""
        return self._trial_lines.at(self._start(id))

    @cached_property
    def known_trials(self) -> FinishedTrials:
        """The finished trials, in the order of `trials`, as they were when one was first asked for. Raises RunError."""
        return FinishedTrials(self.ranking, self._read_index())

    def trial_ids(self, *, failed: bool = True) -> set[str]:
        """Return the ids of the finished trials; without `failed`, only of those that were answered."""
        return {key.id for key in (self.known_trials if failed else self.known_trials.answered)}

    def sample(self, id: str) -> Sample:
        """Return a sample by its id, with the facts that hooks added. Raises RunError when there is none."""
        try:
            return self.samples.named(id)
        except KeyError as error:
            problem = f"{self.path / 'samples.jsonl'} has no sample {id!r}, which was asked; restore the file"
            raise RunError(problem) from error

    @cached_property
    def samples(self) -> Samples:
        """The samples as they were asked; each is read when it is asked for. Raises RunError."""
        path = self.path / "samples.jsonl"
        try:
            status = path.stat()
        except OSError as error:
            raise RunError(f"{path} is missing; restore the file") from error
        # `replacing` gives the file another inode, even if size and time stay the same.
        state = (path, status.st_ino, status.st_size, status.st_mtime_ns)
        if (read_already := _SAMPLES.get(state)) is not None:
            return read_already
        ids, starts = list[str](), array("Q", (0,))

        def note(line: bytes) -> None:
            ids.append(str(orjson.loads(line)["id"]))
            starts.append(starts[-1] + len(line))

        deque(read_lines(path, note), maxlen=0)
        lines = LineFile(path, starts, opened=open_kept)

        def read(position: int) -> Sample:
            with undamaged(f"{path}:{position + 1}"):
                return read_sample(lines[position])

        found = _SAMPLES[state] = Samples(ids, read)
        return found

    def blob(self, sha256: str) -> bytes:
        """Return content that a trial refers to by its SHA-256. Raises RunError: it is not there, or was changed."""
        self.has_blob(sha256)
        path = self.path / "blobs" / sha256
        try:
            content = read_kept(path, self.path, _MOST_OF_BLOB)
        except OSError as error:
            raise unreadable(path, error) from error
        if hashlib.sha256(content).hexdigest() != sha256:
            raise RunError(f"{path} is damaged or was changed: its content has another SHA-256; restore the file")
        return content

    def has_blob(self, sha256: str) -> bool:
        """Return whether the run keeps content that a trial refers to by its SHA-256. Raises RunError."""
        if not is_sha256(sha256):
            raise RunError(f"{self.path} is damaged or was changed: it refers to {sha256!r:.80} in place of a SHA-256")
        path = self.path / "blobs" / sha256
        if not os.path.lexists(path):
            # A mirrored run is brought here without its blobs, each of which follows when it is asked for.
            fetch_run(self.path, f"blobs/{sha256}")
        return os.path.lexists(path)  # `blob` says what is wrong with one that is no file

    def kept_request(self, transcript: Transcript | None) -> bytes | None:
        """Return the first model request as it was sent; `None` if none was, or the run keeps none of the trial.

        Raises RunError.
        """
        sha256 = transcript and transcript.request
        return self.blob(sha256) if sha256 and self.has_blob(sha256) else None

    def to_arrow(self, table: Literal["trials", "scores"] = "scores") -> Any:
        """Return trials or scores as an Arrow table, one row each. Needs the extra `keval[frames]`."""
        return _reading("arrow")(self, table)

    def to_pandas(self, table: Literal["trials", "scores"] = "scores") -> Any:
        """Return trials or scores as a data frame, one row each. Needs the extra `keval[frames]`, and pandas."""
        return _reading("pandas")(self, table)

    @property
    def is_locked(self) -> bool:
        """Whether a process is writing to the run, here or where it is mirrored."""
        mirror = mirror_of(self.path.parent.parent)
        return is_locked(self.path) or (mirror is not None and mirror.is_written(self.path))

    def read_trial(self, line: bytes) -> Trial:
        """Return the trial of a line of trials.jsonl. Raises RunError, LookupError, TypeError or ValueError."""
        agents, conditions = self.manifest.agents, self.manifest.conditions
        trial = read_trial(line, self.sample, lambda agent: agents[agent].characteristics)
        if trial.condition not in conditions:
            raise ValueError(f"the run has no condition {trial.condition!r}")
        return trial

    def all_scores(self) -> Iterator[ScoreLine]:
        """Read every score in the order of the file, those of earlier versions of a scorer, too. Raises RunError."""
        return self._known(self.scores_file.read(self.noting and self.noting(self.scores_file.path.name)))

    def _current(self, lines: Iterable[ScoreLine]) -> Iterator[ScoreLine]:
        scorers = {entry.scorer: entry for entry in self.manifest.scorers}
        return (line for line in lines if is_current(line, scorers.get(line.scorer)))

    def _known(self, lines: Iterable[ScoreLine]) -> Iterator[ScoreLine]:
        """Pass on scores. Raises RunError at one of an agent or a condition that the run does not have."""
        agents, conditions = self.manifest.agents, self.manifest.conditions
        for line in lines:
            if line.agent not in agents or line.condition not in conditions:
                told = f"a score of the agent {line.agent!r} under the condition {line.condition!r}"
                raise RunError(
                    f"{self.scores_file.path} is damaged: it has {told}, which the run does not have; remove it"
                )
            yield line

    @cached_property
    def ranking(self) -> Ranking:
        """The order of the run's trials. Raises RunError."""
        named = (self.manifest.conditions, self.manifest.agents)
        places = ({name: place for place, name in enumerate(each)} for each in named)
        return Ranking(self.trials_file, self.samples, *places)

    @property
    def index_file(self) -> IndexFile:
        """The index of the trials. Raises RunError."""
        return IndexFile(self.trials_file, self.ranking.digest, partial(_entry, self.ranking))

    def complete_indexes(self) -> None:
        """Write the indexes that are missing or out of date; the run has to be locked. Raises RunError."""
        if self.trials_file.exists():
            self.index_file.complete()
            self.scores_file.complete_index(self.ranking)

    def _start(self, id: str) -> int:
        """Return at which byte of its file a trial begins. Raises RunError when there is none."""
        known = self.known_trials
        if (key := known.named(id)) is not None and (place := known.place(key)) is not None:
            return known.index.starts[place] >> 1
        # Only for an error are all ids in memory.
        names = [each.id for each in known]
        example = f"; for example {names[0]!r}" if names else "; it has no trials"
        raise RunError(f"no trial {id!r} in {self.path}{suggestion(id, names) or example}")

    def _trial_at(self, start: int, note: Callable[[bytes], object] | None = None) -> Trial:
        """Read the trial that begins at a byte of its file. Raises RunError."""
        line = self._trial_lines.at(start)
        if note is not None:
            note(line)
        try:
            return self.read_trial(line)
        except DAMAGE as error:
            raise self._trial_lines.damaged(start, error) from error

    def _read_index(self) -> Index:
        # Whether the run is locked is only looked up if its index is unfinished.
        return self.index_file.read(lambda: self.is_locked)

    def _scores_by_trial(self) -> ScoresByTrial:
        from keval.store.scores_by_trial import ScoresByTrial  # what makes scores does not read them so

        return ScoresByTrial.of_file(self.scores_file, self.ranking)

    @cached_property
    def _scores(self) -> ScoresByTrial:
        return self._scores_by_trial()

    @cached_property
    def _trial_lines(self) -> LineFile:
        return LineFile(self.trials_file, opened=open_kept)

    @cached_property
    def digests(self) -> dict[str, str]:
        """The digests of answers that were asked for already, by trial."""
        return {}


def _reading(name: str) -> Callable[..., Any]:
    """Return what reads so of a run, of whichever package has that. Raises PluginError: it is not installed."""
    found: Callable[..., Any] = registry.load(registry.find("keval.readings", name))
    return found


def _entry(ranking: Ranking, line: bytes) -> int:
    """Return the entry of a trial's line in the index."""
    data = orjson.loads(line)
    return ranking.of_line(data) << 1 | (data.get("failure") is not None)
