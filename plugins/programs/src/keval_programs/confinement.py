"""What shuts in the processes of a trial, where its workspace has a sandbox."""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import attrs

from keval.plugin import Context, McpServer, PreflightError, Sandbox, SandboxedCommand, supervised
from keval_programs.environment import find_program, whole_path
from keval_programs.folder import TrialFolder
from keval_programs.limits import Limited, OnDisk, Watch


@attrs.define
class Confinement:
    """A sandbox, and what all processes of one trial have in it; see `keval.plugin.Sandbox`."""

    sandbox: Sandbox
    folder: TrialFolder
    urls: Sequence[str] = ()
    needs: Sequence[Path] = ()
    _before: OnDisk | None = attrs.field(default=None, init=False)

    async def watch(self) -> Watch | None:
        """Return what watches a process; what is on the disk counts from the first one on."""
        if not isinstance(self.sandbox, Limited):
            return None
        folders = (self.folder.home, self.folder.work)
        if self._before is None:
            self._before = await asyncio.to_thread(OnDisk.of, folders, math.inf)
        return Watch(self.sandbox.limits, folders, self._before)

    def command(
        self, command: Sequence[str], env: Mapping[str, str], cwd: Path
    ) -> AbstractAsyncContextManager[Sequence[str]]:
        """Yield the command that starts `command` shut in, in a folder of the trial."""
        folder = self.folder
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
