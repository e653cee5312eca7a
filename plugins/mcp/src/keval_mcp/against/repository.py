"""The Git repository of a config: what differs from a commit, and that commit checked out beside it for a while."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs

from keval.errors import suggestion

_SHOWN = 500
_PREFIX = "keval-base-"
"""How the temporary folders begin in which commits are checked out."""
_LEADING = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX")
"""Variables by which a hook of Git leads all commands to its own repository."""
_SHALLOW = (
    "; this clone is shallow: `git fetch --unshallow origin '+refs/heads/*:refs/remotes/origin/*'` brings all, as"
    " `fetch-depth: 0` of actions/checkout does"
)


class GitError(Exception):
    """Git is not there, or refused."""


@attrs.frozen
class Repository:
    """A Git repository by its top folder."""

    top: Path

    @classmethod
    def of(cls, folder: Path) -> Repository:
        """Return the repository that a folder is in. Raises GitError."""
        return cls(Path(_git(folder, "rev-parse", "--show-toplevel").rstrip("\n")).resolve())

    def commit(self, ref: str) -> str:
        """Return the whole hash of a commit; for `REF...`, of that from which REF and the current one went apart.

        Raises GitError, which says how to fetch it into a shallow clone.
        """
        name = ref.removesuffix("...")
        try:
            found = self._git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}").strip()
            return found if name == ref else self._git("merge-base", found, "HEAD").strip()
        except GitError as error:
            names = self._git("for-each-ref", "--format=%(refname:short)").split()
            is_shallow = self._git("rev-parse", "--is-shallow-repository").strip() == "true"
            told = f"the repository has no commit {ref!r}{suggestion(ref, names)}{_SHALLOW if is_shallow else ''}"
            raise GitError(told) from error

    def changed(self, commit: str) -> list[str]:
        """Return the files that are not as they were at a commit, or that Git does not know, from the top."""
        differing = self._git("diff", "--name-only", "--no-renames", "--no-ext-diff", "-z", commit, "--")
        new = self._git("ls-files", "--others", "--exclude-standard", "-z")
        return (differing + new).split("\0")[:-1]

    def submodules(self, commit: str) -> list[str]:
        """Return the paths of the submodules of a commit, whose files no checkout of it has."""
        entries = self._git("ls-tree", "-r", "-z", commit).split("\0")
        return [path for kind, _, path in (each.partition("\t") for each in entries) if kind.startswith("160000")]

    @contextmanager
    def checked_out(self, commit: str, folder: Path | None = None) -> Iterator[Path]:
        """Yield a temporary folder with a commit, or the one that an earlier run had; it is gone when the block ends.

        What runs that were killed have left of this repository is removed first. Raises GitError.
        """
        # Takes a twentieth of a second to import.
        from filelock import FileLock

        self._remove_abandoned()
        outer = folder.parent if folder else Path(tempfile.mkdtemp(prefix=_PREFIX))
        try:
            outer.mkdir(mode=0o700, exist_ok=folder is None)
        except OSError as error:
            raise GitError(f"no folder can be made for {commit[:7]}: {error}") from error
        with FileLock(outer / "lock"):
            try:
                # Hooks of the user are for the user's own checkouts.
                options = ("-c", f"core.hooksPath={os.devnull}", "worktree", "add", "--quiet", "--detach")
                self._git(*options, str(outer / "tree"), commit)
                yield outer / "tree"
            finally:
                self._remove(outer)

    def _remove_abandoned(self) -> None:
        from filelock import FileLock, Timeout

        for line in self._git("worktree", "list", "--porcelain").splitlines():
            outer = Path(line.removeprefix("worktree ")).parent
            if not line.startswith("worktree ") or not outer.name.startswith(_PREFIX):
                continue
            try:
                # Who uses it holds the lock for as long as it lives.
                with FileLock(outer / "lock", timeout=0):
                    self._remove(outer)
            except (Timeout, OSError):  # it is in use, or gone, or another user's
                continue

    def _remove(self, outer: Path) -> None:
        shutil.rmtree(outer, ignore_errors=True)
        self._git("worktree", "prune")

    def _git(self, *arguments: str) -> str:
        return _git(self.top, *arguments)


def _git(folder: Path, *arguments: str) -> str:
    """Run Git with the settings of the user. Raises GitError with what it says."""
    env = {name: value for name, value in os.environ.items() if name not in _LEADING}
    env |= {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        command = ("git", "-C", str(folder), *arguments)
        done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False)  # noqa: S603
    except FileNotFoundError as error:
        raise GitError("Git is not installed; install it") from error
    if done.returncode:
        told = done.stderr.decode("utf-8", "replace").strip()[-_SHOWN:]
        remedy = "; put the config into a clone of its repository" if "not a git repository" in told else ""
        raise GitError(f"Git refuses {folder}: {told or f'exit status {done.returncode}'}{remedy}")
    return done.stdout.decode("utf-8", "surrogateescape")
