"""Reporting of model requests by an HTTP client that all trials of an agent share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from keval.recorder import Recorder

__all__ = ["report_request", "reporting_requests"]

_recorder: ContextVar[Recorder | None] = ContextVar("keval_recorder", default=None)


class _Request(Protocol):
    async def aread(self) -> bytes: ...


@contextmanager
def reporting_requests(recorder: Recorder) -> Iterator[None]:
    """Let `report_request` report what is sent in the block, and by tasks started there, to `recorder`."""
    token = _recorder.set(recorder)
    try:
        yield
    finally:
        _recorder.reset(token)


async def report_request(request: _Request) -> None:
    """Report a model request to the recorder of the trial that sends it; an event hook for a client of httpx."""
    if (recorder := _recorder.get()) is not None:
        recorder.requested(await request.aread())
