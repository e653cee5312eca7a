"""Serving on loopback: what becomes of requests when the server ends."""

from __future__ import annotations

import asyncio

import httpx2
import pytest
from starlette.types import Receive, Scope, Send

from keval_loopback.serving import serve


def test_a_request_that_waits_does_not_keep_the_server_and_is_dropped_rather_than_answered_with_an_error() -> None:
    waiting = asyncio.Event()

    async def never(scope: Scope, receive: Receive, send: Send) -> None:
        waiting.set()
        await asyncio.Event().wait()

    async def ask() -> None:
        async with httpx2.AsyncClient(trust_env=False, timeout=30) as client, asyncio.timeout(20):
            async with serve(never) as base:
                answer = asyncio.create_task(client.get(base))
                await waiting.wait()
            with pytest.raises(httpx2.TransportError):
                await answer

    asyncio.run(ask())
