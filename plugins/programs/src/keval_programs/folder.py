"""A trial's own folder: its program finds nothing of the user's, or of another trial's, in it.

It is removed afterwards, whatever a program has made of what is in it.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
import time
import uuid
import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import attrs

from keval.errors import PluginWarning, TrialError
from keval.execute.shielding import in_thread
from keval.records.cassettes import Volatile
from keval.records.end_state import Conventions
from keval.seams.contexts import Context
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


# A listing that is changed while it is read may leave entries out (readdir(3)), and one of a million needs memory.
_AT_ONCE = 10_000
_TRIES = 3
_PATIENCE = 0.1
"""Seconds between two tries."""


def remove_folder(path: Path) -> None:
    """Remove a folder with all that is in it. Links are removed and never followed, folders without access are opened.

    What cannot be removed, such as a file of another user, is warned of.
    """
    for attempt in range(_TRIES):
        try:
            _remove(path)
            return
        except OSError as error:
            if not os.path.lexists(path):
                return
            # A process that was killed may be seen for a moment after, and what it wrote last is nobody's.
            if attempt < _TRIES - 1:
                time.sleep(_PATIENCE)
                continue
            told = f"{path} cannot be removed: {error.strerror or error}; remove it yourself"
            warnings.warn(told, PluginWarning, stacklevel=2)


def _remove(path: Path) -> None:
    """Remove a folder. Raises OSError.

    All folders in it are moved into one of them before they are emptied: so a deep tree needs neither a deep stack, nor
    long paths, nor many descriptors.
    """
    if os.scandir not in os.supports_fd:  # Windows
        shutil.rmtree(path)
        return
    if path.is_symlink():
        path.unlink()
        return
    _let_in(str(path), None, path.lstat().st_mode)
    # Drawn, so that nothing in the folder can have this name.
    heap_name = uuid.uuid4().hex
    with _opened(str(path), None) as root:
        os.mkdir(heap_name, dir_fd=root)
        with _opened(heap_name, root) as heap:
            moved = _emptied(root, heap, 0, but=heap_name)
            while names := os.listdir(heap):
                for name in names:
                    with _opened(name, heap) as folder:
                        moved = _emptied(folder, heap, moved)
                    os.rmdir(name, dir_fd=heap)
        os.rmdir(heap_name, dir_fd=root)
    path.rmdir()


def _emptied(folder: int, heap: int, moved: int, but: str = "") -> int:
    """Remove what is in a folder, and move folders to the heap under numbers; returns how many have been moved."""
    while True:
        with os.scandir(folder) as listing:
            found = [entry for entry in islice(listing, _AT_ONCE) if entry.name != but]
        if not found:
            return moved
        for entry in found:
            if entry.is_dir(follow_symlinks=False):
                moved += 1
                _let_in(entry.name, folder, entry.stat(follow_symlinks=False).st_mode)
                os.rename(entry.name, str(moved), src_dir_fd=folder, dst_dir_fd=heap)
            else:
                os.unlink(entry.name, dir_fd=folder)


@contextmanager
def _opened(name: str, folder: int | None, flags: int = os.O_RDONLY) -> Iterator[int]:
    descriptor = os.open(name, flags | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _let_in(name: str, folder: int | None, mode: int) -> None:
    """Let the user into a folder, which may have been replaced by a link meanwhile."""
    if mode & stat.S_IRWXU == stat.S_IRWXU:
        return
    if not hasattr(os, "O_PATH"):
        os.chmod(name, stat.S_IRWXU, dir_fd=folder, follow_symlinks=False)
        return
    # Python's chmod follows links on Linux; this path leads to what was opened, whatever has the name by now.
    with _opened(name, folder, os.O_PATH) as descriptor:
        os.chmod(f"/proc/self/fd/{descriptor}", stat.S_IRWXU)
