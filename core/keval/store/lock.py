"""The lock of a run: one process at a time writes to it, on one machine, and any number look whether one does."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from keval.errors import RunError
from keval.files import open_kept
from keval.seams.results import mirror_of

_PATIENCE = 0.2
"""Seconds to wait for another process that only looks whether the run is locked."""
_CONTENDED = (errno.EACCES, errno.EAGAIN, errno.ENOSYS)
"""How a file system says that a lock is held; one without locks has the file only while somebody holds it."""


@contextmanager
def locked(run: Path, lost: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Keep other processes from writing to a run. Raises RunError when one does already.

    `lost` is called if one on another machine writes to it nevertheless, where the run is mirrored.
    """
    # Takes a twentieth of a second to import, which only a run that is written to needs.
    from filelock import FileLock, Timeout

    lock = FileLock(run / ".lock", timeout=_PATIENCE)
    try:
        lock.acquire()
    except Timeout as error:
        raise RunError(f"another process is writing to {run}; wait for it to end") from error
    except OSError as error:
        raise RunError(f"{run} cannot be written: {error}") from error
    try:
        with mirror.writing(run, lost) if (mirror := mirror_of(run.parent.parent)) else nullcontext():
            yield
    finally:
        lock.release()


def fetch_run(run: Path, file: str = "") -> None:
    """Bring a run that lies elsewhere up to date here, or a file of its blobs and recording. Raises RunError.

    What a process that was killed has not brought there yet is brought there.
    """
    # A run lies at RESULTS/EVALUATION/RUN, and a mirror is that of all results.
    mirror = mirror_of(run.parent.parent)
    if mirror is not None and mirror.fetch(run, file) and not is_locked(run):
        # Who locks a run mirrors it, too, and so brings there what the killed process had left here.
        with locked(run):
            pass


if sys.platform == "win32":

    def is_locked(run: Path) -> bool:
        """Whether a process is writing to a run."""
        from filelock import FileLock, Timeout

        if not (run / ".lock").exists():
            return False
        try:
            # Windows has no shared locks for this, so two who look at once may take each other for a writer.
            with FileLock(run / ".lock", timeout=0):
                return False
        except Timeout:
            return True
        except OSError:  # no permission to lock it
            return False

else:
    import fcntl

    def is_locked(run: Path) -> bool:
        """Whether a process is writing to a run."""
        try:
            file = open_kept(run / ".lock")
        except OSError:  # there is none, no permission to read it, or it is no file
            return False
        with file:
            try:
                # Shared, so that those who look at the same time do not take each other for a process that writes.
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError as error:
                return error.errno in _CONTENDED
        return False
