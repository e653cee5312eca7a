"""The way to Claude Code's process, as the SDK's transport, and the SDK's client on it.

The SDK's own transport adds the user's whole environment, waits five seconds for a process that is busy, and leaves it
behind when it is cancelled twice.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import claude_agent_sdk
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, Transport

from keval.plugin import PreflightError, TranscriptBuilder
from keval_programs import Process, running, to_the_end

_GRACE = 2.0
"""Seconds to end by itself; it takes 0.05, or 0.2 with a server to stop."""


def find_claude() -> str:
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
class Connection(Transport):
    """The lines of JSON that pass between the SDK and a process that runs already."""

    process: Process

    async def connect(self) -> None:
        """Do nothing: the process was started."""

    async def write(self, data: str) -> None:
        """Send a line. Raises TrialError when nobody is there to read it."""
        await self.process.write(data)

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        """Yield every message. Raises TrialError when the process ends otherwise than it should."""
        while line := await self.process.readline():
            # Some builds write lines of their own among the messages.
            if line.startswith(b"{"):
                yield json.loads(line)
        if await self.process.wait():
            raise self.process.death()

    async def end_input(self) -> None:
        """Say that nothing more will be sent."""
        self.process.stdin.close()

    async def close(self) -> None:
        """Let it end by itself, for a while."""
        await self.end_input()
        await self.process.ended(_GRACE)

    def is_ready(self) -> bool:
        """Whether it runs."""
        return self.process.is_running


@asynccontextmanager
async def connected(process: Process, builder: TranscriptBuilder) -> AsyncIterator[ClaudeSDKClient]:
    """Start the process and connect to it; it ends by itself after its work, and at once when the body is cut short.

    Raises:
        TrialError: it cannot be started, or ends too early.
    """
    async with running(process, builder):
        client = ClaudeSDKClient(ClaudeAgentOptions(verbatim_prompts=True), Connection(process))
        try:
            await client.connect()
            yield client
        except BaseException:
            process.terminate()
            raise
        finally:
            await to_the_end(client.disconnect())
