"""A trial's own folder: its program finds nothing of the user's, or of another trial's, in it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs

from keval.errors import TrialError
from keval.records.cassettes import Volatile
from keval.records.end_state import Conventions
from keval.seams.contexts import Context
from keval_programs.removal import remove_folder
from keval_programs.shielding import in_thread
from keval_programs.tree import Tree

_PREFIX = "keval-trial-"

FOLDER_PATHS = Volatile(
    "paths in the folder of the trial, whose name is drawn", pattern=rf"""[^\s"'\[\]]*/{_PREFIX}[^\s"'\[\]]*"""
)
"""What is volatile of the requests of a program that tells its model where it works."""

OF_PROGRAMS = (
    FOLDER_PATHS,
    Volatile("the day of the trial, which several programs tell", pattern=r"Today's date[^\n]*"),
    Volatile("the day of the trial, as Codex tells it", pattern=r"<current_date>[^<]*"),
    Volatile("how long a call took, which Codex tells", pattern=r"Wall time: [\d.]+ seconds"),
    Volatile("an id of each command, which Codex draws", pattern=r"Chunk ID: \w+"),
    Volatile("ids of messages and calls, which programs draw", field="input.*.id"),
    Volatile("ids of the session and the turn", field="client_metadata"),
    Volatile("an id of the session", field="prompt_cache_key"),
    Volatile("ids of the device and the session", field="metadata.user_id"),
)
"""What programs draw or measure and put into their requests, beside what they ask."""


@attrs.frozen
class FolderConventions:
    """What a program reads in its folder by itself, as a config says it; paths are relative to the folder.

    `instructions` is the file that it reads as instructions, and `skills` the folder in which it discovers skills.
    """

    instructions: str | None = None
    skills: str | None = None

    def declared(self) -> Conventions:
        """Return what an agent declares that runs the program; see `keval.plugin.WorksInFolder`."""
        return Conventions(self.instructions, self.skills, sandboxed=True)


@attrs.frozen
class TrialFolder:
    """The folder, which only the user can read; secrets go into its files, as a command line is public.

    A sandbox lets the program write in its home and its working folder. keval opens nothing in these but by `Tree`.
    """

    root: Path
    work: Path
    """The folder that the program works in: the trial's workspace, or else an empty one in `root`."""

    @classmethod
    def at(cls, root: Path, workspace: Path | None = None) -> TrialFolder:
        """Make the folders in an empty one."""
        real = root.resolve()
        folder = cls(real, real / "work" if workspace is None else workspace.resolve())
        for path in (folder.home, folder.own):
            path.mkdir()
        if workspace is None:
            folder.work.mkdir()
        return folder

    @property
    def home(self) -> Path:
        """The home of the program, for its settings, sessions and memory."""
        return self.root / "home"

    @property
    def own(self) -> Path:
        """What keval writes for the program, which in a sandbox only reads it."""
        return self.root / "keval"

    def write(self, name: str, content: str) -> Path:
        """Write a file of keval's and return its path. Raises TrialError of kind `bad_file`."""
        try:
            with Tree.at(self.own) as tree:
                tree.write(name, content.encode("utf-8", "replace"))
        except OSError as error:
            raise TrialError(f"{name} cannot be written for the program: {error.strerror}", kind="bad_file") from error
        return self.own / name

    def write_json(self, name: str, content: Any) -> Path:
        """Write a JSON file of keval's and return its path. Raises TrialError of kind `bad_file`."""
        return self.write(name, json.dumps(content, ensure_ascii=False))


@asynccontextmanager
async def open_folder(context: Context | None = None) -> AsyncIterator[TrialFolder]:
    """Make the folder, and remove it with everything in it; the workspace of a trial's `context` is left as it is."""
    workspace = context.workspace.folder if context is not None and context.workspace is not None else None
    root = Path(tempfile.mkdtemp(prefix=_PREFIX))
    try:
        yield TrialFolder.at(root, workspace)
    finally:
        # A busy disk takes ten milliseconds, in which other trials go on.
        await in_thread(lambda: remove_folder(root))
