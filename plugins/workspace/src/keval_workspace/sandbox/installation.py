"""What was installed with a program: the files that it cannot run without, and no more of the folders around them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import attrs

SYSTEM = (
    *map(Path, ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")),
    Path("/etc/alternatives"),  # by which Debian's programs lead to one another
)
"""The folders of the system's programs, which are in every sandbox."""


@attrs.define
class Installation:
    """The folders, files and symbolic links of programs, each where it is; `path` is the PATH of their environment.

    What is of the system is left out: it is in every sandbox.
    """

    path: str
    shown: set[Path] = attrs.field(factory=set, init=False)
    links: dict[Path, str] = attrs.field(factory=dict, init=False)

    def add(self, program: Path) -> None:
        """Add a program, or any other file or folder: links to it, what is around it, and what interprets it."""
        at = Path(os.path.abspath(program))
        while at not in self.links and at not in self.shown:
            around = [] if at.is_dir() else [*_around(at)]
            self.shown.update(around)
            if (python := _python(at)) is not None:
                self.add(python)
            if not at.is_symlink():
                if not around:
                    self.shown.add(at)
                break
            self.links[at] = os.readlink(at)
            at = Path(os.path.abspath(at.parent / self.links[at]))
        interpreter = _interpreter(at, self.path)
        if interpreter is not None:
            self.add(interpreter)

    def arguments(self) -> Iterator[str]:
        """Yield the options of `bwrap` that show all of it, read-only."""
        shown = [path for path in sorted(self.shown) if not _is_in(path, self.shown - {path})]
        for path in shown:
            if not _is_in(path, SYSTEM):
                yield from ("--ro-bind", str(path), str(path))
        for link, target in sorted(self.links.items()):
            if not _is_in(link, {*shown, *SYSTEM}):
                yield from ("--symlink", target, str(link))


def _around(program: Path) -> Iterator[Path]:
    """Yield the folders that a program needs whole: packages of npm, a virtual environment, a Python or a Node."""
    if "node_modules" in program.parts:
        yield Path(*program.parts[: program.parts.index("node_modules") + 1])
    folder, prefix = program.parent, program.parent.parent
    if folder.name != "bin":
        return
    if (prefix / "pyvenv.cfg").is_file():
        yield prefix
    elif any(prefix.glob("lib/python3*")) or (prefix / "lib" / "node_modules").is_dir():
        yield from (folder, prefix / "lib")


def _python(program: Path) -> Path | None:
    """Return the Python that the virtual environment of a program is made of, if it is in one."""
    try:
        lines = (program.parent.parent / "pyvenv.cfg").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    settings = dict(line.split(" = ", 1) for line in lines if " = " in line)
    found = shutil.which("python3", path=settings.get("home"))
    return Path(found) if found else None


def _interpreter(script: Path, path: str) -> Path | None:
    """Return what the first line of a script names, `#!/usr/bin/env node` for example."""
    try:
        with script.open("rb") as file:
            words = os.fsdecode(file.readline(256)).split() if file.read(2) == b"#!" else []
    except OSError:  # a folder, or one that nobody may read
        return None
    if words and os.path.basename(words[0]) == "env":
        named = next((word for word in words[1:] if not word.startswith("-") and "=" not in word), "")
        found = shutil.which(named, path=path)
        return Path(found) if found else None
    return Path(words[0]) if words else None


def _is_in(path: Path, folders: set[Path] | tuple[Path, ...]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)
