"""keval as the client that the official conformance suite starts: `conformance_client.py URL`.

It does what a run does with a server over HTTP: connects, lists the tools, and calls each of them through the tap, in
place of an agent. Where the suite gives credentials, it logs in with them.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx2

from keval import Sample
from keval.plugin import PreflightError
from keval_mcp import Http
from keval_mcp.server.client import Client
from keval_mcp.server.options import Auth
from keval_skills.served import ServedSkills
from tests.contexts import started

FOLLOW = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1]).read()"
"""A browser: it goes where the authorization server of the suite, which asks nobody, sends it."""


def auth(url: str, scenario: str) -> Auth | None:
    """Return how to log in as the scenario wants it; the server names its authorization server."""
    if not scenario.startswith("auth/"):
        return None
    given = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    known = {name: given[name] for name in ("client_id", "client_secret") if name in given}
    if known:
        parts = urlsplit(url)
        about = httpx2.get(f"{parts.scheme}://{parts.netloc}/.well-known/oauth-protected-resource{parts.path}").json()
        (known["issuer"],) = about["authorization_servers"]
    if key := given.get("private_key_pem"):
        return Auth(**known, private_key=key, algorithm=given["signing_algorithm"])
    if scenario.startswith("auth/client-credentials"):
        return Auth(**known)
    document = "https://conformance-test.local/client-metadata.json"
    return Auth(**known, browser=(sys.executable, "-c", FOLLOW), client_metadata=document)


def arguments(schema: Mapping[str, Any], first: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments that fit a tool's schema, as far as the suite's tools go; one wants that of the `first` tool."""
    of_type = {"number": 5, "integer": 5, "boolean": True, "object": first}
    return {name: of_type.get(each.get("type"), "text") for name, each in schema.get("properties", {}).items()}


async def read_skills(url: str) -> None:
    """Read the skills of a server, of which some are not what it says of them."""
    async with started(ServedSkills(Http(url=url), "suite"), "skills"):
        pass


async def main(url: str, scenario: str) -> None:
    # A revision of the handshake is agreed on with the server, which may speak an older one.
    if "-client-verify-" in scenario:
        await read_skills(url)
        return
    spoken: Any = "2026-07-28" if os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION") == "2026-07-28" else None
    async with (
        started(
            Http(url=url, auth=auth(url, scenario), client=Client(elicitation="defaults"), protocol=spoken), "suite"
        ) as source,
        source.open(Sample("one", "Does it conform?"), "t") as context,
    ):
        (server,) = context.servers
        assert server.channel is not None
        given = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}")).get("toolCalls")
        tools = await server.channel.list_tools()
        of_all = [
            {"name": tool["name"], "arguments": arguments(tool["inputSchema"], tools[0]["inputSchema"])}
            for tool in tools
        ]
        for call in given or of_all:
            await server.channel.call_tool(call["name"], call["arguments"])


if __name__ == "__main__":
    try:
        asyncio.run(main(sys.argv[1], os.environ.get("MCP_CONFORMANCE_SCENARIO", "")))
    except PreflightError as error:
        # The server of the scenario `initialize` has no tools, and so keval tells that it is of no use.
        if "lists no tools" not in str(error):
            raise
