"""Waiting for what another part of keval writes, where a test is about what happens at the same time."""

import asyncio
from pathlib import Path

__all__ = ["until_written"]


async def until_written(pattern: str, lines: int) -> None:
    """Wait until files of this name in runs below `results`, in the working directory, have so many lines."""
    while _count(pattern) < lines:  # noqa: ASYNC110 - keval writes it, and tells nobody
        await asyncio.sleep(0.005)


def _count(pattern: str) -> int:
    return sum(path.read_bytes().count(b"\n") for path in Path("results").glob(f"*/*/{pattern}"))
