"""What is sent to a model, reported to the recorder of the trial that sends it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from keval.plugin import Recorder

__all__ = ["report", "reporting"]

_recorder: ContextVar[Recorder | None] = ContextVar("keval_gadk_recorder", default=None)


class _Request(Protocol):
    async def aread(self) -> bytes: ...


@contextmanager
def reporting(recorder: Recorder) -> Iterator[None]:
    """Report the model requests that are sent in the block, and by tasks started there, to `recorder`."""
    token = _recorder.set(recorder)
    try:
        yield
    finally:
        _recorder.reset(token)


async def report(request: _Request) -> None:
    """Report a request; an event hook of the HTTP client that all trials share."""
    if (recorder := _recorder.get()) is not None:
        recorder.requested(await request.aread())
