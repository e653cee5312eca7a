"""What shuts in the processes of a trial, where its workspace has a sandbox."""

from __future__ import annotations

import asyncio
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import attrs

from keval.errors import PreflightError
from keval.processes import supervised
from keval.records.servers import McpServer
from keval.seams.contexts import Context, Sandbox, SandboxedCommand
from keval_programs.environments import find_program, whole_path
from keval_programs.folder import TrialFolder
from keval_programs.limits import Limited, OnDisk, Watch

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
