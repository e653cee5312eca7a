"""An agent that looks for what it must not see: it writes what it has found to `found.json`, and becomes the agent that
its other arguments start.

It is given where to look, a port at which it must not reach anybody, and a folder in which it must not write. What it
looks for has `canary` in its name or its content.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path

PROGRAMS = ("/usr", "/bin", "/lib", "/sbin", "/sys", "/dev", sys.prefix, sys.base_prefix)
MOST_BYTES = 1_000_000


def main(root: str, port: int, folder: Path, agent: list[str]) -> None:
    found = [*files(root), *environments(), *(f"connected to {port}" for _ in reached(port)), *written(folder)]
    Path("found.json").write_text(json.dumps(found), encoding="utf-8")
    os.execv(sys.executable, [sys.executable, *agent])


def files(root: str) -> list[str]:
    """Return the files below `root` that have a canary; of programs and devices only the names are looked at."""
    found = []
    for at, folders, names in os.walk(root):
        if at == "/proc":
            folders.clear()
        found += [os.path.join(at, name) for name in (*folders, *names) if "canary" in name]
        if not at.startswith(PROGRAMS):
            found += [path for name in names if has_canary(path := os.path.join(at, name))]
    return found


def has_canary(path: str) -> bool:
    try:
        return os.path.isfile(path) and b"canary" in Path(path).read_bytes()[:MOST_BYTES] and path != sys.argv[0]
    except OSError:
        return False


def environments() -> list[str]:
    """Return what has a canary among the environments of all processes that are there."""
    return [str(path) for path in Path("/proc").glob("[0-9]*/environ") if has_canary(str(path))]


def reached(*ports: int) -> list[int]:
    """Return the ports on which somebody answers."""
    found = []
    for port in ports:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
        except OSError:
            continue
        found.append(port)
    return found


def written(folder: Path) -> list[str]:
    """Return the places outside of its own folders in which it can write."""
    found = []
    for place in (folder, folder.parent, Path("/"), Path("/usr/lib"), Path("/etc"), Path("/run")):
        try:
            (place / "mine").write_text("mine", encoding="utf-8")
        except OSError:
            continue
        found.append(f"wrote to {place}")
    return found


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:])
