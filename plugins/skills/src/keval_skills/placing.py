"""Writing into the workspace of a trial: nothing outside of it is touched, and no two contexts write one file."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from keval.plugin import TrialError

_placed: dict[Path, str] = {}
"""What contexts have placed into workspaces that are open now, with their labels."""


@contextmanager
def placing(workspace: Path, folder: str, names: Iterable[str], label: str) -> Iterator[Path]:
    """Make room for files or folders of these names in a folder of the workspace, and yield that folder.

    What the workspace has under these names is removed: a link itself, and not what it leads to. While the block runs,
    no other context can do the same.

    Raises:
        TrialError: of stage `context`; a link leads out of the workspace, or another context has done the same.
    """
    claimed: list[Path] = []
    try:
        with writing(label):
            parent = _folder(workspace.resolve(), folder, label)
            for name in names:
                path = parent / name
                if (other := _placed.get(path)) is not None:
                    told = f"the contexts {other!r} and {label!r} both put {name!r} into {folder or 'the workspace'!r}"
                    raise _error(f"{told}; put them into separate conditions")
                _placed[path] = label
                claimed.append(path)
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)
        yield parent
    finally:
        for path in claimed:
            del _placed[path]


def _folder(root: Path, folder: str, label: str) -> Path:
    """Make a folder in the workspace, and return it without links."""
    path = root
    for step in Path(folder).parts:
        path = Path(os.path.realpath(path / step))  # which also ends where links lead to each other
        if not path.is_relative_to(root):
            told = f"{folder!r} in the workspace leads out of it, to {path}"
            raise _error(f"the context {label!r} is not given: {told}; remove the link (`setup:`)")
        path.mkdir(exist_ok=True)
    return path


@contextmanager
def writing(label: str) -> Iterator[None]:
    """Raise errors of the operating system as TrialError of stage `context`."""
    try:
        yield
    except OSError as error:
        problem = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        raise _error(f"the context {label!r} cannot be put into the workspace: {problem}") from error


def _error(message: str) -> TrialError:
    return TrialError(message, stage="context", kind="not_placed")
