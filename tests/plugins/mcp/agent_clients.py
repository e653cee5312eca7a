"""Clients where the agent would be, which answer what a server asks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, CreateMessageResult, ElicitResult, ListRootsResult, Root, TextContent
from pydantic import FileUrl


@asynccontextmanager
async def connected(url: str, options: dict[str, Any]) -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(verify=False, timeout=60) as http,
        Client(streamable_http_client(url, http_client=http), **{"mode": "legacy", **options}) as client,
    ):
        yield client


def said(result: CallToolResult) -> str:
    return "".join(block.text for block in result.content if isinstance(block, TextContent))


def answering(roots: str) -> dict[str, Any]:
    """Return the callbacks of a client that samples, fills in forms with their message, and has one root."""

    async def sample_model(context: Any, params: Any) -> CreateMessageResult:
        return CreateMessageResult(role="assistant", content=TextContent(text="I think."), model="m")

    async def ask_user(context: Any, params: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={"response": params.message.upper()})

    return {"sampling_callback": sample_model, "elicitation_callback": ask_user, "list_roots_callback": _roots(roots)}


def ordering() -> dict[str, Any]:
    """Return the callbacks of a client that fills in the order of the server `modern`."""

    async def ask_user(context: Any, params: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={"size": "large"})

    return {"mode": "auto", "elicitation_callback": ask_user, "list_roots_callback": _roots("file:///mine")}


PREFIX = "io.modelcontextprotocol/"


def asked(method: str, meta: Any = (), **params: Any) -> dict[str, Any]:
    """Return a request of the revision 2026-07-28, which has no sessions."""
    known = {"protocolVersion": "2026-07-28", "clientCapabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    own = {**{PREFIX + name: value for name, value in known.items()}, **dict(meta)}
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": own}}


def headers_of(message: dict[str, Any]) -> dict[str, str]:
    """Return the headers with which a client sends that request."""
    named = {"mcp-name": message["params"]["name"]} if "name" in message["params"] else {}
    accepted = {"accept": "application/json, text/event-stream"}
    return {"mcp-protocol-version": "2026-07-28", "mcp-method": message["method"], **named, **accepted}


def _roots(uri: str) -> Any:
    async def list_roots(context: Any) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri=FileUrl(uri), name="mine")])

    return list_roots
