"""What shuts in the processes of a trial, where its workspace has a sandbox, and the limits of what they use there.

What a program uses is measured now and then, and it is ended when it is too much.
"""

from __future__ import annotations

import asyncio
import math
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path
from typing import Protocol, runtime_checkable

import attrs

from keval.errors import FailureKind, PreflightError, TrialError
from keval.processes import supervised
from keval.records.servers import McpServer
from keval.seams.contexts import Context, Sandbox, SandboxedCommand
from keval_programs.environments import find_program, whole_path
from keval_programs.folder import TrialFolder
from keval_programs.tree import DEEPEST, Tree

LIMIT_KIND: FailureKind = "sandbox_limit"
"""The kind of the failure of a trial whose program used more than it may."""
_INTERVAL = 0.25
"""Seconds between two looks at processes."""
_DISK_INTERVAL, _DISK_SHARE = 1.0, 20
"""Seconds between two looks at the disk, and how many times as long as the last one took."""


@attrs.frozen
class Limits:
    """What a program may use with all that it starts; each is named as the option by which it is raised.

    `max_bytes` and `max_files` are what it adds on the disk, folders counted.
    """

    max_memory: int
    max_processes: int
    max_bytes: int
    max_files: int
    max_stderr_bytes: int


@runtime_checkable
class Limited(Protocol):
    """A sandbox whose programs are watched; the processes in it descend from the one that its command starts."""

    @property
    def limits(self) -> Limits:
        """What each program may use."""
        ...


@attrs.frozen
class OnDisk:
    """How much is in folders."""

    files: int = 0
    bytes: int = 0
    is_too_deep: bool = False

    @classmethod
    def of(cls, folders: Iterable[Path], most_files: float) -> OnDisk:
        """Count what is there, up to more files than `most_files`. A file with several names counts once."""
        files = size = 0
        seen: set[tuple[int, int]] = set()
        for folder in folders:
            # The program may have removed the folder itself.
            with suppress(OSError), Tree.at(folder) as tree:
                for entry in tree.walk(None, most_files - files):
                    files += 1
                    status = entry.status
                    # In blocks of 512 bytes (stat(2)), as the size of a sparse file is not what it takes on the disk.
                    if status.st_nlink == 1 or (status.st_dev, status.st_ino) not in seen:
                        size += status.st_blocks * 512
                    if status.st_nlink > 1:
                        seen.add((status.st_dev, status.st_ino))
                    if files + tree.folders > most_files:
                        break
                files += tree.folders
                # Nobody counts what lies deeper, so that depth itself is over the limit.
                if any(path.count("/") >= DEEPEST for path in tree.unseen):
                    return cls(files, size, is_too_deep=True)
        return cls(files, size)


@attrs.frozen
class Watch:
    """Watches one program, which may write in `folders`; `before` is what is there as it starts.

    `together` are the processes of all programs of the trial, such as terminals, which share the limits.
    """

    limits: Limits
    folders: Sequence[Path]
    before: OnDisk
    together: set[int] = attrs.field(factory=set)

    async def exceeded(self, name: str, process: int, stderr_bytes: Callable[[], int]) -> TrialError:
        """Return what the program of a process has used too much of, as soon as that is seen."""
        self.together.add(process)
        look_at_disk = 0.0
        try:
            while True:
                # In a thread: /proc and a large folder take long enough to hold up other trials.
                found = await asyncio.to_thread(self._of_processes, [*self.together])
                if stderr_bytes() > self.limits.max_stderr_bytes:
                    found = f"wrote more than {self.limits.max_stderr_bytes:,} bytes on stderr (`max_stderr_bytes`"
                if found is None and time.monotonic() >= look_at_disk:
                    began = time.monotonic()
                    found = await asyncio.to_thread(self._of_disk)
                    took = time.monotonic() - began
                    look_at_disk = time.monotonic() + max(_DISK_INTERVAL, _DISK_SHARE * took)
                if found is not None:
                    return _error(name, found)
                await asyncio.sleep(_INTERVAL)
        finally:
            self.together.discard(process)

    async def failed_by(self, name: str) -> TrialError | None:
        """Return what a program that failed has used too much of, if that is on the disk, where it could not go on."""
        found = await asyncio.to_thread(self._of_disk)
        return None if found is None else _error(name, found)

    def _of_processes(self, programs: list[int]) -> str | None:
        limits = self.limits
        processes = _descendants(programs, limits.max_processes)
        if len(processes) > limits.max_processes:
            return f"started more than {limits.max_processes:,} processes (`max_processes`"
        # What a parent and its children share counts more than once at first, and is looked at closely then.
        for measure in (_own_memory, _shared_memory):
            if sum(map(measure, processes)) <= limits.max_memory:
                return None
        return f"used more than {limits.max_memory:,} bytes of memory (`max_memory`"

    def _of_disk(self) -> str | None:
        limits, before = self.limits, self.before
        now = OnDisk.of(self.folders, before.files + limits.max_files)
        if now.is_too_deep:
            return f"made folders more than {DEEPEST} deep in each other (`max_files`"
        if now.files - before.files > limits.max_files:
            return f"wrote more than {limits.max_files:,} files (`max_files`"
        if now.bytes - before.bytes >= limits.max_bytes:
            return f"wrote {limits.max_bytes:,} bytes or more on the disk (`max_bytes`"
        return None


def _error(name: str, what: str) -> TrialError:
    return TrialError(f"{name} was ended, as it {what} of the sandbox limits it to that)", kind=LIMIT_KIND)


def _descendants(waiting: list[int], most: int) -> list[int]:
    """Return the processes that descend from some, up to one more than `most`."""
    found: list[int] = []
    while waiting and len(found) <= most:
        above = waiting.pop()
        with suppress(OSError):  # it has ended since
            # The kernel lists a child at the thread that started it.
            for task in os.listdir(f"/proc/{above}/task"):
                children = Path(f"/proc/{above}/task/{task}/children").read_bytes().split()
                found += map(int, children)
                waiting += map(int, children)
    return found


def _own_memory(process: int) -> int:
    """Return the bytes of a process in memory that are of no file."""
    with suppress(OSError, ValueError):
        _, resident, shared, *_ = Path(f"/proc/{process}/statm").read_bytes().split()
        return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _shared_memory(process: int) -> int:
    """Return the same, of what processes share the part of each."""
    with suppress(OSError, ValueError):
        for line in Path(f"/proc/{process}/smaps_rollup").read_bytes().splitlines():
            if line.startswith(b"Pss_Anon:"):
                return int(line.split()[1]) * 1024
    return _own_memory(process)


_CARRIED = "KEVAL_INSIDE_"
"""Stands before the name of a variable until the program is inside: it may make the loader or a client load a file."""
_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_READ_ONLY = frozenset({"PPID", "UID", "EUID", "SHELLOPTS", "BASHOPTS"})
"""Variables that shells let nobody set; nor do they know of names in other forms."""


@attrs.define
class Confinement:
    """A sandbox, and what all processes of one trial have in it; see `keval.plugin.Sandbox`."""

    sandbox: Sandbox
    folder: TrialFolder
    urls: Sequence[str] = ()
    needs: Sequence[Path] = ()
    _before: OnDisk | None = attrs.field(default=None, init=False)
    _together: set[int] = attrs.field(factory=set, init=False)

    async def watch(self) -> Watch | None:
        """Return what watches a process; what is on the disk counts from the first one on."""
        if not isinstance(self.sandbox, Limited):
            return None
        folders = (self.folder.home, self.folder.work)
        if self._before is None:
            self._before = await asyncio.to_thread(OnDisk.of, folders, math.inf)
        return Watch(self.sandbox.limits, folders, self._before, self._together)

    def outside(self, env: Mapping[str, str], inside: Mapping[str, str]) -> Mapping[str, str]:
        """Return the environment for what starts the sandbox, in which what the program chose has other names.

        That is `inside`, and what names a folder in which the program writes. What starts the sandbox has the user's
        home: it may read settings there, such as which Docker to ask.
        """
        carried = {name: value for name, value in env.items() if self._is_written(value)}
        kept = {name: value for name, value in env.items() if name not in carried}
        if "HOME" in carried and "HOME" in os.environ:
            kept["HOME"] = os.environ["HOME"]
        # What starts the sandbox must not find a `bwrap` or `docker` that the program wrote.
        if "PATH" in carried:
            folders = carried["PATH"].split(os.pathsep)
            kept["PATH"] = os.pathsep.join(each for each in folders if not self._is_written(each))
        named = {**carried, **inside}.items()
        fitting = {name: value for name, value in named if _NAME.fullmatch(name) and name not in _READ_ONLY}
        return {**kept, **{_CARRIED + name: value for name, value in fitting.items()}}

    def _is_written(self, value: str) -> bool:
        return any(str(each) in value for each in (self.folder.home, self.folder.work))

    def command(
        self, command: Sequence[str], env: Mapping[str, str], cwd: Path
    ) -> AbstractAsyncContextManager[Sequence[str]]:
        """Yield the command that starts `command` shut in, in a folder of the trial; `env` is that `outside`."""
        folder = self.folder
        carried = sorted(name for name in env if name.startswith(_CARRIED))
        if carried:
            names = ((name, name.removeprefix(_CARRIED)) for name in carried)
            # What a container was not handed on (`{env}`) keeps the value that it has inside.
            exported = "; ".join(f'export {name}="${{{own}-${name}}}"; unset {own}' for own, name in names)
            command = ("/bin/sh", "-c", f'{exported}; exec "$@"', "sh", *command)
        return self.sandbox.command(
            SandboxedCommand(
                words=command,
                cwd=cwd,
                env=env,
                root=folder.root,
                work=folder.work,
                writable=(folder.home, folder.work),
                urls=self.urls,
                needs=(folder.own, *self.needs),
            )
        )


def inside(context: Context) -> Context:
    """Return the context with the servers that the agent starts as it must start them in its sandbox, if it has one.

    They work in the workspace by default, and without keval's supervisor: that would look for keval in vain, and what
    is in a sandbox ends with it.
    """
    if context.workspace is None or context.workspace.sandbox is None:
        return context
    work, supervisor = str(context.workspace.folder), supervised(())

    def started(server: McpServer) -> McpServer:
        words = (server.command or "", *server.args)
        if words[: len(supervisor)] == supervisor:
            words = words[len(supervisor) :]
        return attrs.evolve(server, command=words[0], args=words[1:], cwd=server.cwd or work)

    servers = (started(server) if server.transport == "stdio" else server for server in context.servers)
    return attrs.evolve(context, servers=tuple(servers))


def confinement(
    context: Context, folder: TrialFolder, base_url: str | None, needs: Iterable[Path]
) -> Confinement | None:
    """Return what shuts in the processes of a trial, or `None` without a sandbox.

    They reach the model at `base_url` and the trial's servers, and read what they need and the servers that the agent
    starts itself.
    """
    if context.workspace is None or context.workspace.sandbox is None:
        return None
    urls = [url for url in (base_url, *(server.url for server in context.servers)) if url is not None]
    started = [
        need
        for server in context.servers
        if server.command is not None
        for need in needed((server.command, *server.args), Path(server.cwd or folder.work))
    ]
    return Confinement(context.workspace.sandbox, folder, urls, (*needs, *context.plugins, *started))


def needed(command: Sequence[str], folder: Path) -> list[Path]:
    """Return the program of a command and the files that it names, as far as they are on this machine."""
    found = [folder / word for word in command[1:] if os.path.isfile(folder / word)]
    try:
        return [Path(find_program(whole_path(command[0], folder), folder)), *found]
    except PreflightError:  # it may be inside, as in a container
        return found
