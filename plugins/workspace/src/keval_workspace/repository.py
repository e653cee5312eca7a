"""A commit of a Git repository, checked out as a repository of its own that shares nothing with the source."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from keval.errors import suggestion

_SECONDS = 600.0
_BRANCH = "main"
_SHOWN = 500
_SETTINGS = Path(__file__).with_name("git.config")
"""Takes the place of the user's, which may change what is checked out."""


class GitError(Exception):
    """Git is not there, or refused."""


class CommitError(GitError):
    """The repository has no such commit."""


def resolve(repository: Path, commit: str) -> str:
    """Return the whole hash of a commit. Raises GitError: it is no repository. Raises CommitError: it lacks that."""
    if _git(repository, "rev-parse", "--show-prefix").strip():
        raise GitError(f"{repository} is a folder within a Git repository; give the folder of the repository")
    try:
        # `--end-of-options`, as a sample may name a commit that looks like an option.
        return _git(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{commit}}").strip()
    except GitError as error:
        names = _git(repository, "for-each-ref", "--format=%(refname:short)").split()
        raise CommitError(f"{repository} has no commit {commit!r}{suggestion(commit, names)}") from error


def check_out(repository: Path, commit: str, folder: Path) -> None:
    """Make an empty folder a repository of the commit and what it stems from, with its files on the branch `main`.

    Later commits, other branches, tags and the way to the source are not in it. Raises GitError.
    """
    _git(folder, "init", "--quiet", "--template=", f"--initial-branch={_BRANCH}")
    # As one pack, and not as a file for each object, all of which every trial would get a copy of.
    fetch = "-c fetch.unpackLimit=1 fetch --quiet --no-tags --update-shallow --end-of-options"
    _git(folder, *fetch.split(), str(repository), commit)
    _git(folder, "reset", "--quiet", "--hard", commit)
    # It names the path of the source.
    (folder / ".git" / "FETCH_HEAD").unlink()


def _git(folder: Path, *arguments: str) -> str:
    """Run Git without the settings of the user. Raises GitError with what it says."""
    # Where keval is started by a hook of Git, GIT_DIR leads all commands to that repository.
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    # Git would ask for a password on the terminal itself, past its standard input.
    env |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": str(_SETTINGS), "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    command = ("git", "-C", str(folder), *arguments)
    try:
        done = subprocess.run(  # noqa: S603 - arguments are no shell's
            command, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False
        )
    except FileNotFoundError as error:
        raise GitError("Git is not installed; install it, or leave out `git`") from error
    except subprocess.TimeoutExpired as error:
        raise GitError(f"Git did not end within {_SECONDS:g} s: git {' '.join(arguments)}") from error
    if done.returncode:
        told = done.stderr.decode("utf-8", "replace").strip()[-_SHOWN:]
        raise GitError(f"Git refuses {folder}: {told or f'exit status {done.returncode}'}")
    return done.stdout.decode("utf-8", "replace")
