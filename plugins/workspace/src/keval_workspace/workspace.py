"""The workspace of one attempt: its folder, its start, and its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs

from keval.errors import TrialError
from keval.records.end_state import EndState
from keval.records.transcript import Blob
from keval.seams.contexts import Sandbox
from keval_programs.shielding import in_thread
from keval_programs.tree import Tree
from keval_workspace.copying import Limits, TooLargeError
from keval_workspace.end import End, Keeping
from keval_workspace.start import Start


@attrs.define(eq=False)
class TrialWorkspace:
    """See `keval.seams.contexts.Workspace`. `parent` is the descriptor of the folder that the workspace is in.

    By that the workspace is found also if the agent has put a link in place of a folder above it.
    """

    folder: Path
    sandbox: Sandbox | None
    limits: Limits
    keeping: Keeping
    facts: Mapping[str, Any]
    parent: int
    _start: Start | None = attrs.field(default=None, init=False)

    async def begin(self) -> None:
        """Note how the folder is. Raises TrialError of stage `context`."""
        self.close()
        try:
            await in_thread(self._note)
        except (OSError, TooLargeError) as error:
            raise failed(error) from error

    async def end(self, keep: Callable[[Blob], object]) -> EndState:
        """Return what has changed since the begin; see `keval.seams.contexts.Workspace`."""
        start = self._start
        if start is None:
            raise RuntimeError("the workspace has not begun")
        end = End(self._tree(), start, self.keeping)
        state = await in_thread(end.state)
        for blob in end.blobs:
            keep(blob)
        return attrs.evolve(state, facts={**self.facts, "files": len(start.files), "bytes": start.size})

    def close(self) -> None:
        """Forget the start."""
        if self._start is not None:
            self._start.close()

    def _note(self) -> None:  # in the thread, so that it is also closed if the attempt is cancelled meanwhile
        self._start = Start.of(self._tree(), self.limits, self.keeping.diff_bytes)

    def _tree(self) -> Tree:
        return Tree(self.parent, self.folder.name)


def failed(error: Exception) -> TrialError:
    """Return the error for a workspace that cannot be made."""
    told = str(error)
    if isinstance(error, OSError) and error.strerror:
        told = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return TrialError(f"the workspace cannot be made: {told}", stage="context", kind="workspace", retryable=True)
