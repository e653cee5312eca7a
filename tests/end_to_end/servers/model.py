"""A scripted model behind the gateway, for runs of the command line: every vendor's protocol on loopback."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from keval_gateway import Respond, wire_urls
from keval_gateway.app import build_app
from keval_gateway.disturb import Draw
from keval_loopback.serving import serve

__all__ = ["gateway"]


@contextmanager
def gateway(respond: Respond, disturb: Draw | None = None) -> Iterator[dict[str, str]]:
    """Run a gateway in a thread, as the environment that leads to it."""
    ready, ended = threading.Event(), threading.Event()
    environ: dict[str, str] = {}

    async def run() -> None:
        async with serve(build_app(respond, disturb=disturb)) as base:
            urls = wire_urls(base)
            environ.update(OPENAI_BASE_URL=urls["openai-chat"], OPENAI_API_KEY="key-of-nobody")
            environ.update(ANTHROPIC_BASE_URL=urls["anthropic"], ANTHROPIC_API_KEY="key-of-nobody")
            environ.update(GOOGLE_GEMINI_BASE_URL=urls["gemini"], GOOGLE_API_KEY="key-of-nobody")
            ready.set()
            await asyncio.to_thread(ended.wait)

    thread = threading.Thread(target=asyncio.run, args=(run(),))
    thread.start()
    try:
        assert ready.wait(30)
        yield environ
    finally:
        ended.set()
        thread.join()
