"""The run directory: manifest, samples, trials, scores and summary, as plain files that `jq` and pandas read."""

from __future__ import annotations

import os
import secrets
import shutil
from array import array
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from io import BufferedWriter, RawIOBase
from pathlib import Path
from sys import intern
from typing import Any, TypeVar

import attrs
import cattrs
import orjson
from cattrs.errors import BaseValidationError

from keval.config.samples import LineFile, Samples
from keval.errors import PreflightError, RunError
from keval.records import Characteristics, Sample, ScoreLine, Trial
from keval.run.lines import dump, read_sample, read_score, read_trial, sample_line

__all__ = ["RunDirectory"]

T = TypeVar("T")

_MANIFEST = (
    *("run", "evaluation", "config", "config_folder", "simulated", "baseline", "neutral"),
    *("dataset", "trials", "agents", "conditions", "scorers"),
)
"""What every manifest has, and something reads."""
_CURRENT = ".scores.jsonl.current"


@attrs.frozen
class RunDirectory:
    """One run on disk. Creating the object touches nothing."""

    path: Path
    _made: tuple[Path, ...] = attrs.field(default=(), eq=False, repr=False)

    @classmethod
    def create(cls, root: Path, name: str, now: datetime) -> RunDirectory:
        """Make a new directory `root/name/<run id>`. Raises PreflightError when that cannot be written."""
        path = root / name / f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
        made = tuple(folder for folder in path.parents if not folder.exists())
        try:
            path.mkdir(parents=True)
        except OSError as error:
            raise PreflightError(f"the run directory cannot be made: {error}; choose another with -o") from error
        return cls(path, made)

    @classmethod
    def find(cls, run: str, root: Path) -> RunDirectory:
        """Find a run by its path, its id, the start of its id, or `latest`. Raises RunError."""
        if (Path(run) / "manifest.json").is_file():
            return cls(Path(run))
        runs = cls.all(root)
        matching = runs[-1:] if run == "latest" else [found for found in runs if found.id.startswith(run)]
        if len(matching) == 1:
            return matching[0]
        if not matching:
            raise RunError(f"no run {run!r} at that path or under {root}; `keval list` shows what there is")
        raise RunError(f"{run!r} is the start of {len(matching)} runs' ids; give more of it")

    @classmethod
    def all(cls, root: Path) -> list[RunDirectory]:
        """Every run under `root`, oldest first."""
        found = (
            (path.parent.name[:15], path.stat().st_mtime_ns, path.parent) for path in root.glob("*/*/manifest.json")
        )
        return [cls(folder) for _, _, folder in sorted(found)]

    @property
    def id(self) -> str:
        return self.path.name

    @property
    def trials_file(self) -> Path:
        return self.path / "trials.jsonl"

    @property
    def scores_file(self) -> Path:
        return self.path / "scores.jsonl"

    def manifest(self) -> dict[str, Any]:
        """What the run was made of. Raises RunError."""
        manifest = self._json("manifest.json")
        if not isinstance(manifest, dict) or not manifest.keys() >= {*_MANIFEST}:
            raise RunError(f"{self.path / 'manifest.json'} is no manifest of this version of keval")
        return dict(manifest)

    def summary(self) -> dict[str, Any] | None:
        """The summary, if one has been written."""
        return self._json("summary.json") if (self.path / "summary.json").is_file() else None

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        self._write("manifest.json", _pretty(manifest))

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        self._write("summary.json", _pretty(summary))

    @contextmanager
    def freezing(self) -> Iterator[Callable[[Sample], object]]:
        """Yield a function that keeps a sample. When the block fails, there is no run."""
        try:
            with self._replacing("samples.jsonl") as file:
                yield lambda sample: file.write(sample_line(sample) + b"\n")
        except BaseException:
            shutil.rmtree(self.path)
            with suppress(OSError):  # another run has begun in there
                for folder in self._made:
                    folder.rmdir()
            raise

    def samples(self) -> Samples:
        """The samples as they were asked, with the facts that hooks added; each is read when it is asked for."""
        ids: list[str] = []
        starts = array("Q")
        start = 0
        for size, name in self._lines("samples.jsonl", lambda line: (len(line), str(orjson.loads(line)["id"]))):
            ids.append(intern(name))
            starts.append(start)
            start += size
        lines = LineFile(self.path / "samples.jsonl", starts)
        return Samples(ids, lambda position: read_sample(lines[position]))

    def trials(self) -> Iterator[Trial]:
        """Read the finished trials one by one. A torn last line, which a power cut leaves, is no trial."""
        samples, manifest = self.samples(), self.manifest()
        described = {
            label: cattrs.structure(agent["characteristics"], Characteristics) if agent["characteristics"] else None
            for label, agent in manifest["agents"].items()
        }

        def named(sample: str) -> Sample:
            try:
                return samples.named(sample)
            except KeyError as error:
                problem = f"{self.path / 'samples.jsonl'} has no sample {sample!r}, which was asked; restore the file"
                raise RunError(problem) from error

        def read(line: bytes) -> Trial:
            trial = read_trial(line, named, described)
            if trial.condition not in manifest["conditions"]:
                raise ValueError(f"the run has no condition {trial.condition!r}")
            return trial

        return self._lines("trials.jsonl", read)

    def scores(self) -> Iterator[ScoreLine]:
        """Read the scores one by one; those of a scoring pass that was cut short replace what they score again."""
        return self._both_passes(read_score, lambda line: (line.scorer, line.trial))

    def _both_passes(self, read: Callable[[bytes], T], key: Callable[[T], tuple[Hashable, str]]) -> Iterator[T]:
        again: dict[Hashable, set[str]] = {}
        if self.scores_file.exists():
            for scorer, trial in map(key, self._lines(_CURRENT, read)):
                again.setdefault(scorer, set()).add(intern(trial))
        for line in self._lines("scores.jsonl", read):
            scorer, trial = key(line)
            if trial not in again.get(scorer, ()):
                yield line
        yield from self._lines(_CURRENT, read)

    @contextmanager
    def scoring(self, *, everything: bool) -> Iterator[Callable[[bytes], None]]:
        """Yield a function that keeps a line of scores; `everything` says that every scorer of the run scores again.

        The lines of a pass stand in a file of their own until it ends, whichever way, and then replace the earlier
        scores of the same trials by the same scorers; no score is lost before there is another.
        """
        self._settle_scores()
        current = self.path / _CURRENT
        try:
            with _explained(self.scores_file), current.open("ab", buffering=0) as file:
                yield lambda line: _write_all(file, line + b"\n")
                os.fsync(file.fileno())
            if everything:
                current.replace(self.scores_file)
        finally:
            self._settle_scores()

    def _settle_scores(self) -> None:
        current = self.path / _CURRENT
        with _explained(self.scores_file):
            if current.exists() and self.scores_file.exists():
                lines = self._both_passes(lambda line: (line, orjson.loads(line)), lambda pair: _whose(pair[1]))
                self._write("scores.jsonl", (line for line, _ in lines))
                current.unlink()
            elif current.exists():
                current.rename(self.scores_file)

    def _json(self, name: str) -> Any:
        try:
            data = orjson.loads((self.path / name).read_bytes())
        except (OSError, orjson.JSONDecodeError) as error:
            raise RunError(f"{self.path / name} cannot be read: {error}; is {self.path} a run directory?") from error
        return data

    def _write(self, name: str, content: bytes | Iterator[bytes]) -> None:
        """Write a whole file, or leave the one that is there."""
        with self._replacing(name) as file:
            for chunk in [content] if isinstance(content, bytes) else content:
                file.write(chunk)

    @contextmanager
    def _replacing(self, name: str) -> Iterator[BufferedWriter]:
        unfinished = self.path / f".{name}.unfinished"
        with _explained(self.path / name):
            with unfinished.open("wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(self.path / name)

    def _lines(self, name: str, read: Callable[[bytes], T]) -> Iterator[T]:
        path = self.path / name
        if not path.exists():
            return
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if not line.endswith(b"\n"):
                    return
                try:
                    yield read(line)
                except (orjson.JSONDecodeError, LookupError, TypeError, ValueError, BaseValidationError) as error:
                    raise RunError(f"{path}:{number}: this line is damaged: {error!r}; remove it to go on") from error


def _whose(score: Mapping[str, Any]) -> tuple[Hashable, str]:
    return (score["metric"], score["judge"]), score["trial"]


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RunError(f"{path} cannot be written: {error}; what was written before is kept") from error


def _write_all(file: RawIOBase, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[file.write(view) or 0 :]


def _pretty(data: Mapping[str, Any]) -> bytes:
    return orjson.dumps(orjson.loads(dump(data)), option=orjson.OPT_INDENT_2) + b"\n"
