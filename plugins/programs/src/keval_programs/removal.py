"""Removing a folder, whatever a program has made of what is in it."""

from __future__ import annotations

import os
import shutil
import stat
import time
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from keval.errors import PluginWarning

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
    with _opened(name, folder, os.O_PATH) as descriptor:
        os.chmod(f"/proc/self/fd/{descriptor}", stat.S_IRWXU)
