"""A folder of its own for a server that keval starts."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from tempfile import TemporaryDirectory
from typing import Any

import attrs

from keval.plugin import ServerLostError, ServerSpec
from keval_mcp.settle import settle

__all__ = ["in_folder"]


@asynccontextmanager
async def in_folder(server: ServerSpec) -> AsyncIterator[ServerSpec]:
    """Yield the server with the folder that it runs in; one that is made for it is removed afterwards.

    Raises:
        ServerLostError: the folder cannot be made, or what it begins with cannot be copied.
    """
    if server.folder is None:
        yield server
        return
    copied = server.folder.copy
    async with AsyncExitStack() as stack:
        try:
            # A process that was killed may be seen for a moment after, and what it wrote last is nobody's.
            folder = TemporaryDirectory(prefix="keval-server-", ignore_cleanup_errors=True)
            stack.push_async_callback(_in_thread, folder.cleanup)
            if copied is not None:
                await _in_thread(shutil.copytree, copied, folder.name, symlinks=True, dirs_exist_ok=True)
        except OSError as error:
            raise ServerLostError(f"server '{server.name}' gets no folder of its own: {error}") from error
        yield attrs.evolve(server, cwd=folder.name, folder=None)


async def _in_thread(work: Callable[..., Any], *args: Any, **options: Any) -> None:
    """Run `work` in a thread, to its end even while being cancelled: nothing may be copied into a removed folder."""
    task = asyncio.create_task(asyncio.to_thread(work, *args, **options))
    await settle(task)
    task.result()
