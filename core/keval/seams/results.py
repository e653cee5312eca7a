"""The seam of results that lie elsewhere, such as in a bucket, and how what mirrors them is found.

Such results are worked on in a folder of this machine. It has the file `MARKER`, so that a path into it, a run's for
instance, is enough to know that they lie elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import Protocol, runtime_checkable

from keval.errors import PluginError
from keval.seams import registry

MARKER = ".mirror-of"


@runtime_checkable
class ResultsMirror(Protocol):
    """Keeps results that lie elsewhere and folders of this machine alike. Group `keval.results`, name `remote`.

    Runs lie in a folder as in any results directory. Methods are called from any thread, and raise RunError.
    """

    def folder(self, url: str) -> Path:
        """Return the folder for the results at a URL, with the file `MARKER`. Raises ConfigError: there can be none."""
        ...

    def url(self, path: Path) -> str:
        """Return where the results of a folder, or a run of it, lie."""
        ...

    def check(self, results: Path) -> str:
        """Write something there and remove it; returns what was found out, for people."""
        ...

    def find(self, results: Path, run: str = "") -> None:
        """Bring manifests and summaries here: of all runs, of the `latest`, or of those whose ids begin with `run`."""
        ...

    def fetch(self, run: Path, file: str = "") -> bool:
        """Bring a run here but its blobs and recording, or one `file` of these, unless what is here is newer.

        Returns whether it is, as a process left it that was killed; then `writing` brings it there.
        """
        ...

    def writing(self, run: Path, lost: Callable[[], object]) -> AbstractContextManager[None]:
        """Keep other machines from writing to a run, and bring there what is written to it here, until the block ends.

        `lost` is called if another machine writes to it nevertheless. Raises OutageError at the end, unless the block
        fails itself, if all is here and not all of it is there.
        """
        ...

    def is_written(self, run: Path) -> bool:
        """Return whether another machine was writing to a run when it was looked at last."""
        ...

    def adding(self, file: Path) -> AbstractContextManager[None]:
        """Keep other machines from writing to one file of a run, which is alike before the block and after it."""
        ...


@cache
def _mirror() -> ResultsMirror:
    component = registry.find("keval.results", "remote")
    mirror = registry.load(component)()
    if not isinstance(mirror, ResultsMirror):
        raise PluginError(f"{component.target} of {component.distribution} lacks methods of ResultsMirror")
    return mirror


def results_folder(results: str | Path) -> Path:
    """Return the folder of a results directory, which may lie at a URL. Raises ConfigError, PluginError."""
    return _mirror().folder(results) if isinstance(results, str) and "://" in results else Path(results)


def mirror_of(results: Path) -> ResultsMirror | None:
    """Return what mirrors a results folder; `None` if its results lie nowhere else. Raises PluginError."""
    return _mirror() if (results / MARKER).exists() else None
