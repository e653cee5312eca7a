"""The clients that all trials of one adapter share, because each takes some 20 ms to build."""

from __future__ import annotations

import logging
import warnings
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, TypeAlias

import attrs
from agent_framework.openai import OpenAIChatClient, OpenAIChatCompletionClient
from httpx2 import AsyncClient, Limits, Timeout
from mcp import MCPDeprecationWarning
from openai import AsyncOpenAI, DefaultAsyncHttpxClient

from keval.plugin import Endpoint, Wire, report_request

__all__ = ["ChatClient", "Clients"]

ChatClient: TypeAlias = OpenAIChatCompletionClient[Any] | OpenAIChatClient[Any]

_CONNECT_TIMEOUT = 30.0


@attrs.frozen
class Clients:
    """The framework's chat client for one model over one wire, and the HTTP client under its MCP connections."""

    wire: Wire
    chat: ChatClient
    mcp: AsyncClient
    _openai: AsyncOpenAI

    @classmethod
    def build(cls, wire: Wire, url: str, endpoint: Endpoint, max_turns: int) -> Clients:
        """Build both; a message of the user may take `max_turns` model calls."""
        _keep_off_the_terminal()
        # keval retries in one place. A client of our own also leaves out the headers by which the framework tells
        # the model's host about itself.
        http = DefaultAsyncHttpxClient(event_hooks={"request": [report_request]})
        openai = AsyncOpenAI(base_url=url, api_key=endpoint.api_key, max_retries=0, http_client=http)
        kind = OpenAIChatCompletionClient if wire == "openai-chat" else OpenAIChatClient
        chat: ChatClient = kind(model=endpoint.model, async_client=openai)
        # At the next call the framework would ask for an answer without tools; there the trial fails instead.
        chat.function_invocation_configuration["max_iterations"] = max_turns
        return cls(wire, chat, _mcp_client(), openai)

    async def aclose(self) -> None:
        """Close every pooled connection."""
        await self._openai.close()
        await self.mcp.aclose()


def _mcp_client() -> AsyncClient:
    """Return an HTTP client that many trials share and learn nothing about each other through.

    No cookies are kept, and no number of trials at once waits for a connection. How long a call may take is bounded
    by the MCP session, by the server's own timeout.
    """
    return AsyncClient(
        cookies=CookieJar(policy=DefaultCookiePolicy(allowed_domains=[])),
        limits=Limits(max_connections=None, max_keepalive_connections=100),
        timeout=Timeout(_CONNECT_TIMEOUT, read=None),
    )


def _keep_off_the_terminal() -> None:
    """Stop the SDKs' logs from reaching stderr where nobody configured logging; whoever does still gets them all.

    Everything they say about a trial is in its transcript or its failure.
    """
    for name in ("agent_framework", "mcp"):
        logger = logging.getLogger(name)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
    # The framework pings servers of the older protocol by a method that the MCP SDK has deprecated.
    warnings.filterwarnings("ignore", category=MCPDeprecationWarning, module=r"agent_framework\.")
