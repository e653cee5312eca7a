"""The provider `folder`: its options, the folders that it makes, and the workspace of one attempt in each."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, closing
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import attrs
from attrs.validators import ge, gt

from keval.config.evaluation import is_size, size
from keval.errors import FieldError, PreflightError, TrialError
from keval.execute.shielding import in_thread
from keval.records.end_state import EndState
from keval.records.transcript import Blob
from keval.seams.contexts import Sandbox, TrialInfo, Workspace
from keval.seams.transcript_builder import TranscriptBuilder
from keval_programs.environments import environment
from keval_programs.folder import TrialFolder, open_folder
from keval_programs.process import Process, running
from keval_programs.tree import GIT, Tree
from keval_workspace.copying import Limits, TooLargeError, copy_tree
from keval_workspace.end import End, Keeping, Start, check_pattern
from keval_workspace.repository import CommitError, GitError, check_out, resolve
from keval_workspace.sandbox import BubblewrapOptions, CommandSandbox, sandbox_of, tried_out


class SetupError(Exception):
    """A setup command failed; the message has its exit status and the end of its output."""


_WRONG = (OSError, TooLargeError, GitError, SetupError)
"""What is raised where a workspace cannot be made."""


@attrs.frozen
class Git:
    """A commit of the Git repository that is copied, by any name that Git knows it by."""

    commit: str


@attrs.frozen
class CopiedFile:
    """A file of the workspace that is a copy of this one."""

    copy: Path


@attrs.frozen
class Template:
    """What every trial's folder is a copy of, made once: `facts` describe it."""

    folder: Path
    facts: Mapping[str, Any]


@attrs.define
class Folder:
    """A folder of its own for each attempt at a trial, removed afterwards; an empty one without options.

    `copy` is a folder that it begins with a copy of. With `git`, that is a Git repository, and the workspace a
    repository with the given commit checked out and what that stems from. `files` are written into it, by path: texts,
    or files to copy. The commands of `setup` run in it, each a text for the shell or a list of words, for at most
    `setup_timeout_seconds`. It may begin with `max_files` files of `max_bytes` together.

    Of its end, the difference is kept up to `max_diff_bytes`, and the files that match a glob of `artifacts`, up to
    `max_artifact_bytes` together. `sandbox` shuts the agent's program in: `bubblewrap`, or a command that starts it.
    """

    copy: Path | None = None
    git: Git | None = None
    setup: tuple[str | tuple[str, ...], ...] = ()
    setup_timeout_seconds: float = attrs.field(default=600.0, validator=gt(0))
    files: Mapping[str, str | CopiedFile] = attrs.field(factory=dict, repr=False)
    artifacts: tuple[str, ...] = ()
    sandbox: Literal["none", "bubblewrap"] | CommandSandbox | BubblewrapOptions = "none"
    max_files: int = attrs.field(default=100_000, validator=ge(1))
    max_bytes: int | str = attrs.field(default="1 GB", validator=is_size)
    max_diff_bytes: int | str = attrs.field(default="200 KB", validator=is_size)
    max_artifact_bytes: int | str = attrs.field(default="20 MB", validator=is_size)
    _template: Template | None = attrs.field(default=None, init=False, eq=False, repr=False)
    _held: AsyncExitStack = attrs.field(factory=AsyncExitStack, init=False, eq=False, repr=False)

    @staticmethod
    async def sandboxes() -> Mapping[str, str | None]:
        """Try out the sandboxes; see `keval.plugin.WorkspaceProvider`."""
        return await tried_out()

    def check(self) -> Iterable[FieldError]:
        """Return what is wrong with the options; see `keval.plugin.WorkspaceProvider`."""
        if os.scandir not in os.supports_fd:
            yield FieldError((), "workspaces need Linux or macOS; run the evaluation there")
            return
        yield from self._check_copy()
        for path in self.files:
            if problem := _path_problem(path):
                yield FieldError(("files", path), problem, at_key=True)
        for index, pattern in enumerate(self.artifacts):
            if problem := check_pattern(pattern):
                yield FieldError(("artifacts", index), problem)
        for index, command in enumerate(self.setup):
            if not (command.strip() if isinstance(command, str) else "".join(command)):
                yield FieldError(("setup", index), "the command is empty; write one, or remove the entry")

    def _check_copy(self) -> Iterator[FieldError]:
        for path, content in self.files.items():
            if isinstance(content, CopiedFile) and not content.copy.is_file():
                yield FieldError(("files", path, "copy"), f"{content.copy} is no file; give the one to copy")
        if self.copy is None:
            if self.git is not None:
                told = "`git` has no repository; add `copy:` with the folder of the Git repository"
                yield FieldError(("git",), told, at_key=True)
        elif not self.copy.is_dir():
            what = "is no folder" if self.copy.exists() else "is not there"
            yield FieldError(("copy",), f"{self.copy} {what}; give the folder that the workspace begins with")
        elif self.git is not None:
            try:
                resolve(self.copy, self.git.commit)
            except CommitError as error:
                yield FieldError(("git", "commit"), str(error))
            except GitError as error:
                yield FieldError(("copy",), str(error))
        elif (self.copy / GIT).is_file():
            told = "a worktree, whose repository is elsewhere and would be changed; add `git: {commit: HEAD}`"
            yield FieldError(("copy",), f"{self.copy} is {told}")

    async def prepare(self) -> None:
        """Make a template of all but the setup, and one workspace whole; see `keval.plugin.WorkspaceProvider`."""
        if (sandbox := sandbox_of(self.sandbox)) is not None:
            await sandbox.prepare()
        async with AsyncExitStack() as stack:
            stack.callback(self._forget)
            folder = await stack.enter_async_context(open_folder())
            try:
                facts = await in_thread(lambda: self._make_template(folder.work))
                self._template = Template(folder.work, facts)
                # What setup or a limit would fail in each trial fails here, before the first one.
                async with self._opened() as workspace:
                    await workspace.begin()
            except _WRONG as error:
                raise PreflightError(str(failed(error))) from error
            except TrialError as error:
                raise PreflightError(str(error)) from error
            self._template = Template(folder.work, {**workspace.facts, **facts})
            self._held = stack.pop_all()

    async def aclose(self) -> None:
        """Remove the template; see `keval.plugin.Closable`."""
        await self._held.aclose()

    def _forget(self) -> None:
        self._template = None

    def open(self, trial: TrialInfo) -> AbstractAsyncContextManager[Workspace]:
        """Make a fresh folder; see `keval.plugin.WorkspaceProvider`."""
        return self._opened()

    def describe(self) -> Mapping[str, Any]:
        """Return what it is made of, more after `prepare`; see `keval.plugin.WorkspaceProvider`."""
        told: dict[str, Any] = {} if self.copy is None else {"copy": self.copy.name}
        told |= self._template.facts if self._template is not None else {}
        if (sandbox := sandbox_of(self.sandbox)) is not None:
            told["sandbox"] = sandbox.describe()
        return told

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[TrialWorkspace]:
        async with AsyncExitStack() as stack:
            try:
                folder = await stack.enter_async_context(open_folder())
                await in_thread(lambda: self._fill(folder.work))
                await set_up(folder, self.setup, self.setup_timeout_seconds)
                parent = os.open(folder.root, os.O_RDONLY | os.O_DIRECTORY)
            except _WRONG as error:
                raise failed(error) from error
            stack.callback(os.close, parent)
            sandbox = sandbox_of(self.sandbox)
            facts: dict[str, Any] = {} if sandbox is None else {"sandbox": sandbox.describe()}
            keeping = Keeping(self.artifacts, size(self.max_artifact_bytes), size(self.max_diff_bytes))
            workspace = TrialWorkspace(folder.work, sandbox, self._limits, keeping, facts, parent)
            stack.callback(workspace.close)
            yield workspace

    def _make_template(self, folder: Path) -> Mapping[str, Any]:
        self._fill(folder)
        with Tree.at(folder) as tree, closing(Start.of(tree, self._limits, size(self.max_diff_bytes))) as start:
            facts: dict[str, Any] = {"files": len(start.files), "bytes": start.size, "digest": start.digest()}
        if self.git is not None and self.copy is not None:
            facts["commit"] = resolve(self.copy, self.git.commit)
        return facts

    def _fill(self, folder: Path) -> None:
        """Write into an empty folder all that it has before its setup."""
        if self._template is not None:
            copy_tree(self._template.folder, folder, self._limits)
            return
        if self.copy is not None and self.git is not None:
            check_out(self.copy, resolve(self.copy, self.git.commit), folder)
        elif self.copy is not None:
            copy_tree(self.copy, folder, self._limits)
        with Tree.at(folder) as tree:
            for path, content in self.files.items():
                tree.write(path, content.encode() if isinstance(content, str) else content.copy.read_bytes())

    @property
    def _limits(self) -> Limits:
        return Limits(self.max_files, size(self.max_bytes))


def _path_problem(path: str) -> str | None:
    """Return what is wrong with the path of a file to write, if anything."""
    if path.startswith("/") or ".." in PurePosixPath(path).parts:
        return f"{path!r} leads out of the workspace; write it relative to the workspace, without `..`"
    if "\0" in path or not PurePosixPath(path).parts or path.endswith("/"):
        return f"{path!r} names no file; write a path such as `src/main.py`"
    return None


@attrs.define(eq=False)
class TrialWorkspace:
    """See `keval.seams.contexts.Workspace`. `parent` is the descriptor of the folder that the workspace is in.

    By that the workspace is found also if the agent has put a link in place of a folder above it.
    """

    folder: Path
    sandbox: Sandbox | None
    limits: Limits
    keeping: Keeping
    facts: Mapping[str, Any]
    parent: int
    _start: Start | None = attrs.field(default=None, init=False)

    async def begin(self) -> None:
        """Note how the folder is. Raises TrialError of stage `context`."""
        # An adapter that adds files begins again, and the first start is of no use then.
        self.close()
        try:
            await in_thread(self._note)
        except (OSError, TooLargeError) as error:
            raise failed(error) from error

    async def end(self, keep: Callable[[Blob], object]) -> EndState:
        """Return what has changed since the begin; see `keval.seams.contexts.Workspace`."""
        start = self._start
        if start is None:
            raise RuntimeError("the workspace has not begun")
        end = End(self._tree(), start, self.keeping)
        state = await in_thread(end.state)
        for blob in end.blobs:
            keep(blob)
        return attrs.evolve(state, facts={**self.facts, "files": len(start.files), "bytes": start.size})

    def close(self) -> None:
        """Forget the start."""
        if self._start is not None:
            self._start.close()

    def _note(self) -> None:  # in the thread, so that it is also closed if the attempt is cancelled meanwhile
        self._start = Start.of(self._tree(), self.limits, self.keeping.diff_bytes)

    def _tree(self) -> Tree:
        return Tree(self.parent, self.folder.name)


def failed(error: Exception) -> TrialError:
    """Return the error for a workspace that cannot be made."""
    told = str(error)
    if isinstance(error, OSError) and error.strerror:
        told = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return TrialError(f"the workspace cannot be made: {told}", stage="context", kind="workspace", retryable=True)


_SHELL = ("/bin/sh", "-c")
_TO_STDERR = 'exec "$@" 1>&2'
"""Runs a command that writes all its output where `Process` keeps the end of it."""


async def set_up(folder: TrialFolder, commands: Sequence[str | Sequence[str]], seconds: float) -> None:
    """Run commands one after the other; all that they have started ends with them. Raises SetupError."""
    for command in commands:
        words = (*_SHELL, command) if isinstance(command, str) else command
        process = Process(
            name="sh", command=(*_SHELL, _TO_STDERR, "sh", *words), env=environment(folder.home, {}), cwd=folder.work
        )
        shown = command if isinstance(command, str) else " ".join(command)
        try:
            async with running(process, TranscriptBuilder()), asyncio.timeout(seconds):
                # A command that asks for something fails at once, and does not wait until its time is over.
                process.stdin.close()
                code = await process.wait()
        except TimeoutError as error:
            problem = f"did not end within {seconds:g} s; raise `setup_timeout_seconds`"
            raise SetupError(f"the setup command `{shown}` {problem}{_output(process)}") from error
        except TrialError as error:
            raise SetupError(f"the setup command `{shown}`: {error}") from error
        if code:
            raise SetupError(f"the setup command `{shown}` ended with exit status {code}{_output(process)}")


def _output(process: Process) -> str:
    said = process.told()
    return f"; its output ends:\n{said}" if said else "; it wrote nothing"
