"""The SDK's client on a process of its own, of which nothing is left afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient

from keval_claude_code.process import Process

__all__ = ["connected"]


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
