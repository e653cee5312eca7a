"""Claude Code's process, as the SDK's transport, and the SDK's client on it.

The SDK's own transport adds the user's whole environment, waits five seconds for a process that is busy, and leaves it
behind when it is cancelled twice.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import attrs
import claude_agent_sdk
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, Transport

from keval.plugin import PreflightError, TrialError, supervised

_LONGEST_LINE = 2**28
"""Bytes of one message, with a tool's whole result in it."""

_GRACE = 2.0
"""Seconds to end by itself; it takes 0.05, or 0.2 with a server to stop."""

_STDERR_CHARACTERS = 2000


def find_program() -> str:
    """Return the path of the program that the SDK brings, or else of the one installed.

    Raises:
        PreflightError: there is none.
    """
    bundled = Path(claude_agent_sdk.__file__).parent / "_bundled" / ("claude.exe" if os.name == "nt" else "claude")
    found = str(bundled) if bundled.is_file() else shutil.which("claude")
    if found is None:
        raise PreflightError(
            "Claude Code's program is neither in the package claude-agent-sdk nor on PATH;"
            " install a wheel of claude-agent-sdk that is made for this platform, or Claude Code itself"
        )
    return found


@attrs.define(eq=False)
class Process(Transport):
    """A Claude Code and every process it starts, in a process group of their own; it can be started once.

    `terminate`, `kill` and `wait` are for whoever owns it; the SDK only lets it end.
    """

    command: Sequence[str]
    env: Mapping[str, str]
    cwd: Path
    stderr: Path
    _process: asyncio.subprocess.Process | None = None

    async def connect(self) -> None:
        """Start it. Raises TrialError."""
        try:
            with self.stderr.open("wb") as stderr:
                self._process = await asyncio.create_subprocess_exec(
                    *supervised(self.command),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=stderr,
                    cwd=self.cwd,
                    env=self.env,
                    limit=_LONGEST_LINE,
                    start_new_session=True,
                )
        except OSError as error:
            raise TrialError(f"{self.command[0]} cannot be started: {error}", kind="process") from error

    async def write(self, data: str) -> None:
        """Send a line. Raises TrialError when nobody is there to read it."""
        if self._process is None or self._process.stdin is None:
            raise RuntimeError("the process was not started")
        try:
            self._process.stdin.write(data.encode())
            await self._process.stdin.drain()
        except ConnectionError as error:
            raise self._death() from error

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        """Yield every message. Raises TrialError when the process ends otherwise than it should."""
        if self._process is None or self._process.stdout is None:
            raise RuntimeError("the process was not started")
        while line := await self._process.stdout.readline():
            # Some builds write lines of their own among the messages.
            if line.startswith(b"{"):
                yield json.loads(line)
        if await self._process.wait():
            raise self._death()

    async def end_input(self) -> None:
        """Say that nothing more will be sent."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()

    async def close(self) -> None:
        """Let it end by itself, for a while."""
        await self.end_input()
        if self._process is not None:
            await asyncio.wait({asyncio.ensure_future(self._process.wait())}, timeout=_GRACE)

    def is_ready(self) -> bool:
        """Whether it runs."""
        return self._process is not None and self._process.returncode is None

    def terminate(self) -> None:
        """Ask it and all it started to end at once."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it and all it started."""
        self._signal(signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)

    async def wait(self) -> None:
        """Wait until it is gone."""
        if self._process is not None:
            await self._process.wait()

    def _signal(self, number: int) -> None:
        if self._process is None:
            return
        # It may be gone, or be going: macOS forbids to signal a group that has only processes nobody waited for.
        with suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                self._process.send_signal(number)
            else:
                os.killpg(self._process.pid, number)

    def _death(self) -> TrialError:
        code = None if self._process is None else self._process.returncode
        how = "stopped reading" if code is None else f"ended with exit code {code}"
        said = self.stderr.read_text(encoding="utf-8", errors="replace")[-_STDERR_CHARACTERS:].strip()
        words = f"; its stderr ends:\n{said}" if said else ""
        return TrialError(f"Claude Code's process {how} during the trial{words}", kind="process", retryable=True)


@asynccontextmanager
async def connected(process: Process) -> AsyncIterator[ClaudeSDKClient]:
    """Start the process and connect to it; it ends by itself after its work, and at once when the body is cut short.

    Raises:
        TrialError: it cannot be started, or ends too early.
    """
    client = ClaudeSDKClient(ClaudeAgentOptions(verbatim_prompts=True), process)
    try:
        await client.connect()
        yield client
    except BaseException:
        process.terminate()
        raise
    finally:
        await _to_the_end(_leave(client, process))


async def _leave(client: ClaudeSDKClient, process: Process) -> None:
    try:
        await client.disconnect()
    finally:
        process.kill()
        await process.wait()


async def _to_the_end(work: Coroutine[None, None, None]) -> None:
    """Do `work` whole even when cancelled meanwhile; the cancellation is passed on afterwards."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    task.result()
    if cancelled is not None:
        raise cancelled
