"""A scripted model behind the gateway, for runs of the command line: every vendor's protocol on loopback."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.types import ASGIApp

from keval_gateway import Respond, wire_urls
from keval_gateway.app import build_app
from keval_gateway.disturb import Draw
from keval_loopback.serving import serve

__all__ = ["gateway", "served"]


@contextmanager
def served(app: ASGIApp) -> Iterator[str]:
    """Serve an application in a thread, and yield its base URL."""
    ready, ended = threading.Event(), threading.Event()
    bases: list[str] = []

    async def run() -> None:
        async with serve(app) as base:
            bases.append(base)
            ready.set()
            await asyncio.to_thread(ended.wait)

    thread = threading.Thread(target=asyncio.run, args=(run(),))
    thread.start()
    try:
        assert ready.wait(30)
        yield bases[0]
    finally:
        ended.set()
        thread.join()


@contextmanager
def gateway(respond: Respond, disturb: Draw | None = None) -> Iterator[dict[str, str]]:
    """Run a gateway in a thread, as the environment that leads to it."""
    with served(build_app(respond, disturb=disturb)) as base:
        urls = wire_urls(base)
        yield {
            "OPENAI_BASE_URL": urls["openai-chat"],
            "OPENAI_API_KEY": "key-of-nobody",
            "ANTHROPIC_BASE_URL": urls["anthropic"],
            "ANTHROPIC_API_KEY": "key-of-nobody",
            "GOOGLE_GEMINI_BASE_URL": urls["gemini"],
            "GOOGLE_API_KEY": "key-of-nobody",
        }
