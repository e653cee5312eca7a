"""The MCP servers that are in a folder: programs, and the files of clients, each as what `keval init` takes for one."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

PLACES = (".mcp.json", ".vscode/mcp.json", ".cursor/mcp.json", "claude_desktop_config.json")
"""Where clients keep the servers of a project."""

_SUFFIXES = (".py", ".js", ".mjs", ".ts")
_FOLDERS = ("", "dist", "build", "src")
_SERVES = re.compile(r"\b(Fast)?MCP(Server)?\(|\bmcp\.server\b|\bMcpServer\b|@modelcontextprotocol/(sdk/)?server")
_STARTS = re.compile(r"\.run\w*\(|__main__|\.connect\(")
_MOST_FILES, _MOST_CHARACTERS = 200, 100_000


def servers_in(here: Path) -> list[str]:
    """Return commands that start servers of a folder, and the files of clients that have some, the likeliest first."""
    found = [path for path in PLACES if (here / path).is_file()]
    project = _text(here / "pyproject.toml")
    if "mcp" in project and (section := re.search(r"^\[project\.scripts\]\n((?:.+\n?)*)", project, re.MULTILINE)):
        start = "uv run " if _is_uv_project(here) else ""
        found += [f"{start}{name}" for name in re.findall(r"^([\w.-]+) *=", section[1], re.MULTILINE)]
    paths = [path for folder in _FOLDERS for path in sorted((here / folder).glob("*.*")) if path.suffix in _SUFFIXES]
    for path in paths[:_MOST_FILES]:
        text = _text(path)
        if not path.name.startswith("test_") and _SERVES.search(text) and _STARTS.search(text):
            word = path.relative_to(here).as_posix()
            found.append(shlex.join([*started_by(word, here), word]))
    return found


def started_by(word: str, here: Path) -> list[str]:
    """Return the words that start a file with a program, in the environment of its project; none if it needs none."""
    path = here / word
    if path.suffix not in _SUFFIXES or not path.is_file():
        return []
    if path.suffix != ".py":
        return ["npx", "-y", "tsx"] if path.suffix == ".ts" else ["node"]
    if _is_uv_project(here) or "# /// script" in _text(path):
        return ["uv", "run"]
    own = ".venv/bin/python"
    return [own if (here / own).exists() else "python" if shutil.which("python") else "python3"]


def _is_uv_project(here: Path) -> bool:
    return (here / "uv.lock").exists() or "[tool.uv" in _text(here / "pyproject.toml")


def _text(path: Path) -> str:
    """Return the beginning of a file; nothing if it cannot be read."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(_MOST_CHARACTERS)
    except OSError:
        return ""
