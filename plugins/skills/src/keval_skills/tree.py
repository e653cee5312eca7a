"""A folder of a skill or a plugin as it is given to agents: which files it has, and copies of it."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs

import keval_programs as programs

SKILL_FILE = "SKILL.md"
"""What makes a folder a skill."""
MOST_BYTES = 30_000_000
MOST_FILES = 5_000
_LEFT_OUT = (".git", "__pycache__", ".DS_Store")
"""What a folder may have in it that is no part of a skill."""
_EVALS = ("evals", "evals.json")
"""Where a skill has its tests, with what is expected of answers, which agents must not find."""


@attrs.frozen
class Tree:
    """The files and links of a folder, as paths relative to it, sorted; `problems` say what cannot be given."""

    root: Path
    files: tuple[str, ...]
    problems: tuple[str, ...] = ()

    @classmethod
    def read(cls, root: Path) -> Tree:
        """Look at a folder, and at nothing outside of it."""
        files: list[str] = []
        problems: list[str] = []
        size = 0
        for path in _walk(root, problems):
            name = path.relative_to(root).as_posix()
            problem, length = _looked_at(root, path, name)
            if problem:
                problems.append(f"{place(root)}: {problem}")
            size += length
            files.append(name)
            if size > MOST_BYTES or len(files) > MOST_FILES:
                told = f"it has more than {MOST_BYTES // 1_000_000} MB or {MOST_FILES} files, of which each trial would"
                problems.append(f"{place(root)}: {told} get a copy; move what agents do not need out of it")
                break
        return cls(root, tuple(sorted(files)), tuple(problems))

    def copy(self, to: programs.Tree, folder: str, names: Iterable[str]) -> None:
        """Copy some of the files, with their modes, into a folder that is made; links as links. Raises OSError."""
        for name in names:
            path = self.root / name
            if path.is_symlink():
                to.link(f"{folder}/{name}", os.readlink(path))
            else:
                to.write(f"{folder}/{name}", path.read_bytes(), stat.S_IMODE(path.stat().st_mode))

    def digest(self, names: Iterable[str]) -> str:
        """Return the SHA-256 of some of the files: their names, contents, and whether they can be run."""
        digest = hashlib.sha256()
        for name in names:
            path = self.root / name
            linked = path.is_symlink()
            content = os.readlink(path).encode() if linked else path.read_bytes()
            runs = not linked and bool(path.stat().st_mode & stat.S_IXUSR)
            digest.update(f"{name}\0{linked}{runs}{len(content)}\0".encode() + content)
        return digest.hexdigest()

    def within(self, folder: str) -> set[str]:
        """Return the files in a folder of it, or the file itself."""
        return {name for name in self.files if name == folder or name.startswith(f"{folder}/")}


def digest_of(*parts: str) -> str:
    """Return the SHA-256 of texts, each apart from the others."""
    return hashlib.sha256(
        "".join(f"{len(part)}\0{part}" for part in parts).encode("utf-8", "surrogatepass")
    ).hexdigest()


def place(path: Path, line: int | None = None) -> str:
    """Return a path for a message, relative to the working folder if it is in that, with a line."""
    here = Path.cwd()
    shown = path.relative_to(here) if path.is_relative_to(here) else path
    return str(shown) if line is None else f"{shown}:{line}"


def _walk(root: Path, problems: list[str]) -> Iterator[Path]:
    """Yield everything in a folder that is no folder itself. Links to folders are not followed."""

    def unreadable(error: OSError) -> None:
        problems.append(f"{place(Path(error.filename))}: it cannot be read: {error.strerror}")

    for folder, folders, files in os.walk(root, onerror=unreadable):
        here = Path(folder)
        yield from (here / name for name in files if name not in _LEFT_OUT)
        yield from (here / name for name in folders if name not in _LEFT_OUT and (here / name).is_symlink())
        # In place, as `os.walk` goes into what is left in the list.
        folders[:] = [
            name
            for name in folders
            if name not in _LEFT_OUT and not (name == _EVALS[0] and here.joinpath(*_EVALS).is_file())
        ]


def _looked_at(root: Path, path: Path, name: str) -> tuple[str | None, int]:
    """Return what is wrong with a file or link, if anything, and its size."""
    if not name.isprintable():  # a name that is no UTF-8 has surrogates, which are not printable
        return f"the name {name!r} has characters that cannot be shown; rename the file", 0
    kind = path.lstat()
    if stat.S_ISLNK(kind.st_mode):
        target = os.readlink(path)
        inside = Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))
        if os.path.isabs(target) or not inside:
            return f"the link {name!r} leads out of the folder, to {target!r}; copy the file into it", 0
        return None if path.exists() else f"the link {name!r} leads nowhere; remove it", 0
    if not stat.S_ISREG(kind.st_mode):
        return f"{name!r} is a pipe, a socket or a device; remove it", 0
    return None if os.access(path, os.R_OK) else f"{name!r} cannot be read; change its mode", kind.st_size
