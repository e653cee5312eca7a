"""A scripted model behind the gateway, for runs of the command line: every vendor's protocol on loopback."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.types import ASGIApp

from keval_doubles.disturb import Disturb, Fault
from keval_gateway import Respond, wire_urls
from keval_gateway.app import build_app
from keval_loopback.serving import serve
from tests.end_to_end.servers.disturbed import Disturbed

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
def gateway(
    respond: Respond, draw: Disturb | None = None, made: Counter[Fault] | None = None
) -> Iterator[dict[str, str]]:
    """Run a gateway in a thread, as the environment that leads to it; `made` counts the faults that are drawn."""
    app = build_app(respond)
    with served(app if draw is None else Disturbed(app, draw, Counter() if made is None else made)) as base:
        urls = wire_urls(base)
        yield {
            "OPENAI_BASE_URL": urls["openai-chat"],
            "OPENAI_API_KEY": "key-of-nobody",
            "ANTHROPIC_BASE_URL": urls["anthropic"],
            "ANTHROPIC_API_KEY": "key-of-nobody",
            "GOOGLE_GEMINI_BASE_URL": urls["gemini"],
            "GOOGLE_API_KEY": "key-of-nobody",
        }
