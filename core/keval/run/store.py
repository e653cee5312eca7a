"""The run directory: manifest, samples, trials, scores and summary, as plain files that `jq` and pandas read."""

from __future__ import annotations

import secrets
import shutil
from array import array
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from sys import intern
from typing import Any

import attrs
import cattrs
import orjson

from keval.config.samples import LineFile, Samples
from keval.errors import PreflightError, RunError
from keval.records import Characteristics, Sample, Trial
from keval.run.files import read_lines, replacing
from keval.run.lines import dump, read_sample, read_trial, sample_line
from keval.run.scores_file import ScoresFile
from keval.scores import ScoreLine

__all__ = ["FORMAT", "RunDirectory"]

FORMAT = 2
"""The version of what is in a run directory; another one is not read."""

_MANIFEST = (
    *("run", "evaluation", "config", "config_folder", "simulated", "baseline", "neutral"),
    *("dataset", "trials", "agents", "conditions", "judges", "rubrics", "scorers"),
)
"""What every manifest has, and something reads."""


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

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from writing to the run. Raises RunError when one does already."""
        # Takes a twentieth of a second to import, which only a run that is written to needs.
        from filelock import FileLock, Timeout

        # A moment, as somebody may just be looking whether it is locked.
        lock = FileLock(self.path / ".lock", timeout=0.2)
        try:
            lock.acquire()
        except Timeout as error:
            raise RunError(f"another process is writing to {self.path}; wait for it to end") from error
        except OSError as error:
            raise RunError(f"{self.path} cannot be written: {error}") from error
        try:
            yield
        finally:
            lock.release()

    @property
    def is_locked(self) -> bool:
        """Whether a process is writing to the run."""
        from filelock import FileLock, Timeout

        if not (self.path / ".lock").exists():
            return False
        try:
            with FileLock(self.path / ".lock", timeout=0):
                return False
        except Timeout:
            return True
        except OSError:  # not ours to write
            return False

    @property
    def id(self) -> str:
        return self.path.name

    @property
    def trials_file(self) -> Path:
        return self.path / "trials.jsonl"

    @property
    def scores_file(self) -> ScoresFile:
        return ScoresFile(self.path / "scores.jsonl")

    def manifest(self) -> dict[str, Any]:
        """What the run was made of. Raises RunError."""
        manifest = self._json("manifest.json")
        if not isinstance(manifest, dict):
            raise RunError(f"{self.path / 'manifest.json'} is no manifest")
        if manifest.get("format") != FORMAT or not manifest.keys() >= {*_MANIFEST}:
            raise RunError(
                f"{self.path / 'manifest.json'} is of another version of keval, whose runs this one does not read;"
                " use that version, or run the evaluation again"
            )
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
            with replacing(self.path / "samples.jsonl") as file:
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
        for size, name in read_lines(
            self.path / "samples.jsonl", lambda line: (len(line), str(orjson.loads(line)["id"]))
        ):
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

        return read_lines(self.trials_file, read)

    def scores(self) -> Iterator[ScoreLine]:
        """Read the scores one by one."""
        return self.scores_file.read()

    def _json(self, name: str) -> Any:
        try:
            data = orjson.loads((self.path / name).read_bytes())
        except (OSError, orjson.JSONDecodeError) as error:
            raise RunError(f"{self.path / name} cannot be read: {error}; is {self.path} a run directory?") from error
        return data

    def _write(self, name: str, content: bytes) -> None:
        with replacing(self.path / name) as file:
            file.write(content)


def _pretty(data: Mapping[str, Any]) -> bytes:
    return orjson.dumps(orjson.loads(dump(data)), option=orjson.OPT_INDENT_2) + b"\n"
