"""An agent that looks for what it must not see: it writes what it has found to `found.json`, and becomes the agent that
its other arguments start.

It is given where to look, a port at which it must not reach anybody, and a folder in which it must not write. What it
looks for has `quokka4711` in its name or its content.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from contextlib import suppress
from pathlib import Path

PROGRAMS = ("/usr", "/bin", "/lib", "/sbin", "/sys", "/dev", sys.prefix, sys.base_prefix)
MOST_BYTES = 1_000_000


def main(root: str, port: int, folder: Path, agent: list[str]) -> None:
    found = [*files(root), *environments(), *reached(port)]
    with suppress(OSError):
        (folder / "mine").write_text("mine", encoding="utf-8")
    Path("found.json").write_text(json.dumps(found), encoding="utf-8")
    os.execv(sys.executable, [sys.executable, *agent])


def files(root: str) -> list[str]:
    """Return the files below `root` that have the mark; of programs and devices only the names are looked at."""
    found = []
    for at, folders, names in os.walk(root):
        if at == "/proc":
            folders.clear()
        found += [os.path.join(at, name) for name in (*folders, *names) if "quokka4711" in name]
        if not at.startswith(PROGRAMS):
            found += [path for name in names if has_mark(path := os.path.join(at, name))]
    return found


def has_mark(path: str) -> bool:
    try:
        if not os.path.isfile(path) or path == sys.argv[0]:
            return False
        with open(path, "rb") as file:  # other tests leave files with more bytes than there is memory
            return b"quokka4711" in file.read(MOST_BYTES)
    except OSError:
        return False


def environments() -> list[str]:
    """Return what has the mark among the environments of all processes that are there."""
    return [str(path) for path in Path("/proc").glob("[0-9]*/environ") if has_mark(str(path))]


def reached(port: int) -> list[str]:
    """Return the port if somebody answers there."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except OSError:
        return []
    return [f"port {port}"]


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:])
