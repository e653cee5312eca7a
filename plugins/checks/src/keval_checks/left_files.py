"""Files that an agent left: found and read without leaving its workspace, whatever it put there."""

from __future__ import annotations

import os
import stat
from pathlib import Path, PurePosixPath

from keval.plugin import EndOfTrial, TrialError

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
    if end.folder.is_symlink() or not end.folder.is_dir():
        raise UnfitError("the workspace itself is gone")
    return end.folder


def check_path(field: str, path: str) -> None:
    """Raise ValueError if a path cannot be one of a workspace."""
    parts = PurePosixPath(path)
    if not path or parts.is_absolute() or ".." in parts.parts or "\0" in path:
        raise ValueError(f"'{field}' must be a path within the workspace, such as out/report.md: {path!r}")


def found_file(folder: Path, path: str) -> Path | None:
    """Return where a path of the workspace leads, through links within it; `None` if nothing is there.

    Raises UnfitError: it leads out of the workspace, or nowhere.
    """
    named = folder / path
    try:
        led = named.resolve(strict=True)
    except FileNotFoundError:
        if named.is_symlink():
            raise UnfitError(f"{path} is a link that leads nowhere") from None
        return None
    except NotADirectoryError:
        return None
    except (OSError, RuntimeError) as error:  # links in a circle are a RuntimeError before Python 3.13
        raise UnfitError(f"{path} cannot be followed: {error}") from error
    if not led.is_relative_to(folder.resolve()):
        raise UnfitError(f"{path} is a link that leads out of the workspace")
    return led


def read_left(folder: Path, path: str) -> bytes:
    """Read a file of the workspace. Raises UnfitError: it is not there, or is none that can be read."""
    led = found_file(folder, path)
    if led is None:
        raise UnfitError(f"{path} is not there")
    try:
        # A pipe without a writer would not open, and a device may never end.
        descriptor = os.open(led, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            told = os.fstat(descriptor)
            if not stat.S_ISREG(told.st_mode):
                raise UnfitError(f"{path} is a {'folder' if stat.S_ISDIR(told.st_mode) else 'special file'}")
            content = file.read(MOST_BYTES + 1)
    except IsADirectoryError:
        raise UnfitError(f"{path} is a folder") from None
    except OSError as error:
        raise UnfitError(f"{path} cannot be read: {error.strerror}") from error
    if len(content) > MOST_BYTES:
        raise UnfitError(f"{path} has more than {MOST_BYTES // 2**20} MiB, which is more than a check reads")
    return content
