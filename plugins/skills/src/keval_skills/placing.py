"""Writing into the workspace of a trial: nothing outside of it is touched, and no two contexts write one file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from keval.plugin import TrialError
from keval_programs import LedOutError, Tree

_placed: dict[Path, str] = {}
"""What contexts have placed into workspaces that are open now, with their labels."""


@contextmanager
def placing(workspace: Path, folder: str, names: Iterable[str], label: str) -> Iterator[Tree]:
    """Make room for files or folders of these names in a folder of the workspace, and yield that folder.

    What the workspace has under these names is removed: a link itself, and not what it leads to. While the block runs,
    no other context can do the same.

    Raises:
        TrialError: of stage `context`; a link leads out of the workspace, or another context has done the same.
    """
    claimed: list[Path] = []
    try:
        with ExitStack() as stack:
            with writing(label):
                parent = stack.enter_context(_folder(workspace, folder, label))
                for name in names:
                    path = Path(parent.path or "", name)
                    if (other := _placed.get(path)) is not None:
                        where = folder or "the workspace"
                        told = f"the contexts {other!r} and {label!r} both put {name!r} into {where!r}"
                        raise _error(f"{told}; put them into separate conditions")
                    _placed[path] = label
                    claimed.append(path)
                    parent.remove(name)
            yield parent
    finally:
        for path in claimed:
            del _placed[path]


@contextmanager
def _folder(workspace: Path, folder: str, label: str) -> Iterator[Tree]:
    """Make a folder in the workspace, and open it."""
    with Tree.at(workspace) as tree, ExitStack() as stack:
        try:
            found = stack.enter_context(tree.below(folder))
        except LedOutError as error:
            told = f"{folder!r} in the workspace leads out of it, to {error.target}"
            raise _error(f"the context {label!r} is not given: {told}; remove the link (`setup:`)") from error
        yield found


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
