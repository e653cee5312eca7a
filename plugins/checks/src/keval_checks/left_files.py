"""Files that an agent left: found and read without leaving its workspace, whatever it put there."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath

from keval.plugin import EndOfTrial, TrialError
from keval_programs import Entry, LedOutError, Tree

MOST_BYTES = 64 * 2**20
"""Bytes of a file that a check reads; a larger file fails it."""


class UnfitError(Exception):
    """What the agent left is not what the check looks for; the message says what is there."""


def cannot_run(problem: str, kind: str = "check") -> TrialError:
    """Return the error of a check that cannot run."""
    return TrialError(problem, stage="score", kind=kind)


def workspace_of(end: EndOfTrial) -> Path:
    """Return the trial's folder.

    Raises:
        TrialError: it has none.
        UnfitError: the folder is not there any more.
    """
    if end.folder is None:
        raise cannot_run("the trial has no workspace; add `workspace:` to the evaluation, the condition or the sample")
    try:
        with Tree.at(end.folder) as tree, tree.followed(""):
            return end.folder
    except OSError as error:
        raise UnfitError("the workspace itself is gone") from error


def check_path(field: str, path: str) -> None:
    """Raise ValueError if a path cannot be one of a workspace."""
    parts = PurePosixPath(path)
    if not path or parts.is_absolute() or ".." in parts.parts or "\0" in path:
        raise ValueError(f"'{field}' must be a path within the workspace, such as out/report.md: {path!r}")


@contextmanager
def left(folder: Path, path: str) -> Iterator[Entry | None]:
    """Yield what is at a path of the workspace, through links within it; `None` if nothing is there.

    Raises UnfitError: it leads out of the workspace, or nowhere, or cannot be read.
    """
    try:
        with Tree.at(folder) as tree, ExitStack() as stack:
            led, entry = tree.led(path), None
            try:
                entry = stack.enter_context(tree.followed(led))
            except FileNotFoundError:
                # Where no link is on the way, the file is just not there, which a check may want.
                if led != str(PurePosixPath(path)):
                    raise UnfitError(f"{path} is a link that leads nowhere") from None
            except NotADirectoryError:
                entry = None
            yield entry
    except LedOutError:
        raise UnfitError(f"{path} is a link that leads out of the workspace") from None
    except OSError as error:
        how = "followed" if error.errno == errno.ELOOP else "read"
        raise UnfitError(f"{path} cannot be {how}: {error.strerror or error}") from error


def read_left(folder: Path, path: str) -> bytes:
    """Read a file of the workspace. Raises UnfitError: it is not there, or is none that can be read."""
    with left(folder, path) as entry:
        content = of_file(entry, path).content(MOST_BYTES)
    if content is None:
        raise UnfitError(f"{path} has more than {MOST_BYTES // 2**20} MiB, which is more than a check reads")
    return content


def of_file(entry: Entry | None, path: str) -> Entry:
    """Return the entry of a file. Raises UnfitError: it is none."""
    if entry is None or entry.kind:
        raise UnfitError(f"{path} is {'not there' if entry is None else f'a {entry.kind}'}")
    return entry
