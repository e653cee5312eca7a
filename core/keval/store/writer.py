"""Writing a run: its directory, lock, samples, manifest, summary and blobs."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from io import BufferedWriter
from pathlib import Path

import attrs

from keval.errors import PreflightError, RunError
from keval.files import explained, read_lines, replacing, sync_folder
from keval.records.manifest import Manifest
from keval.records.transcript import Blob
from keval.records.trial import Sample
from keval.redaction import Redactor
from keval.store.lock import locked
from keval.store.run import Run
from keval.store.serialization import sample_line, to_json


@attrs.frozen
class RunWriter:
    """Writes to one run directory. Trials and scores are written by `Journal` and `ScoresFile`."""

    path: Path
    _made: tuple[Path, ...] = attrs.field(default=(), eq=False, repr=False)

    @classmethod
    def create(cls, root: Path, name: str, now: datetime) -> RunWriter:
        """Make a new directory `root/name/<run id>`. Raises PreflightError when that cannot be written."""
        # The random end tells runs apart that begin in the same second.
        path = root / name / f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
        try:
            # Looked up before they are made: `remove` takes away no folder that was there.
            made = tuple(folder for folder in path.parents if not folder.exists())
            path.mkdir(parents=True)
            for folder in (path, *made):
                sync_folder(folder.parent)  # which has its name
        except OSError as error:
            raise PreflightError(f"the run directory cannot be made: {error}; choose another with -o") from error
        return cls(path, made)

    @property
    def run(self) -> Run:
        """The run, for reading."""
        return Run(self.path)

    @contextmanager
    def locked(self, lost: Callable[[], object] = lambda: None) -> Iterator[None]:
        """Keep other processes from writing to the run, as `keval.store.lock.locked` does. Raises RunError.

        The run has its indexes before the block, and after a block that does not fail.
        """
        with locked(self.path, lost):
            self.run.complete_indexes()
            yield
            self.run.complete_indexes()

    @contextmanager
    def freezing(self, redact: Redactor) -> Iterator[Callable[[Sample], bool]]:
        """Yield a function that writes a sample and returns whether it was redacted.

        If the block fails, the directory is removed.
        """
        try:
            # Hook plugins look up facts in the block: one that fails, or a Ctrl-C, must leave no run without samples.
            with replacing(self.path / "samples.jsonl") as file:
                yield partial(_write_sample, file, redact)
        except BaseException:
            self.remove()
            raise

    def remove(self) -> None:
        """Remove the directory, with the folders above it that were made for it."""
        shutil.rmtree(self.path)
        with suppress(OSError):  # another run has begun in the folder
            for folder in self._made:
                folder.rmdir()

    @contextmanager
    def adding(self, redact: Redactor) -> Iterator[Callable[[Sample], bool]]:
        """Yield a function that adds a sample, as that of `freezing`. If the block fails, all stays as it was."""
        path = self.path / "samples.jsonl"
        with replacing(path) as file:
            file.writelines(read_lines(path, bytes))
            yield partial(_write_sample, file, redact)

    def write_manifest(self, manifest: Manifest) -> None:
        """Write manifest.json, whole or not at all. Raises RunError."""
        self._write("manifest.json", to_json(manifest))

    def write_summary(self, summary: object) -> None:
        """Write summary.json, whole or not at all. Raises RunError."""
        self._write("summary.json", to_json(summary))

    def write_blobs(self, blobs: Iterable[Blob]) -> None:
        """Write content to `blobs/`, each under its SHA-256. Raises RunError."""
        folder = self.path / "blobs"
        with explained(folder):
            # A run may come from anybody, and `mkdir` is content with a link to a folder elsewhere.
            folder.mkdir(exist_ok=True)
            if folder.is_symlink():
                raise RunError(f"{folder} is a link, by which nothing is written; put a folder in its place")
            for blob in blobs:
                if not (folder / blob.sha256).exists():
                    with replacing(folder / blob.sha256, sync_name=False) as file:
                        file.write(blob.content)
            sync_folder(folder)

    def _write(self, name: str, content: bytes) -> None:
        with replacing(self.path / name) as file:
            file.write(content)


def _write_sample(file: BufferedWriter, redact: Redactor, sample: Sample) -> bool:
    told = sample_line(sample)
    line = redact.line(told)
    file.write(line + b"\n")
    return line != told
