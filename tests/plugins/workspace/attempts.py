"""Attempts at trials in a workspace, with a function in place of the agent."""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from keval import Sample
from keval.plugin import Blob, EndState, TrialInfo
from keval_workspace.folder import Folder

TRIAL = TrialInfo("t1", Sample("s1", "Mend it.", "Done."), "agent", "baseline")


def attempt(
    folder: Folder, agent: Callable[[Path], object], keep: Callable[[Blob], object] = lambda _: None
) -> EndState:
    """Let an agent work in a workspace of `folder`, which is prepared first, and return the end."""

    async def work() -> EndState:
        await folder.prepare()
        try:
            async with folder.open(TRIAL) as workspace:
                await workspace.begin()
                await asyncio.to_thread(agent, workspace.folder)
                return await workspace.end(keep)
        finally:
            await folder.aclose()

    return asyncio.run(work())


def changes(end: EndState) -> dict[str, str]:
    """What has changed, by path."""
    return {change.path: change.kind for change in end.changes}


def write(folder: Path, files: Mapping[str, str]) -> Path:
    """Write files into a folder."""
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return folder


def git(folder: Path, *arguments: str) -> str:
    """Run Git without anybody's settings."""
    options = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=trunk")
    command = ["git", "-C", str(folder), *options, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def trial_folders() -> set[str]:
    """The folders of trials that are there."""
    return {path.name for path in Path(tempfile.gettempdir()).glob("keval-trial-*")}


def contents(folder: Path, names: Iterable[str] = ("**/*",)) -> dict[str, str]:
    """The files of a folder, Git's own left out, with what is in them."""
    paths = (path for name in names for path in sorted(folder.glob(name)))
    return {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8")
        for path in paths
        if path.is_file() and ".git" not in path.parts
    }
