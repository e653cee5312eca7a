"""An MCP server that says how it is to be used."""

from __future__ import annotations

import json
import socket
from typing import Annotated, Any, Literal

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel, Field

INSTRUCTIONS = "Search before you answer.\nName the shelf, {shelf} and all."

server = MCPServer("library", instructions=INSTRUCTIONS, log_level="CRITICAL")


class Shelf(BaseModel):
    row: Annotated[int, Field(ge=1)]


@server.tool(structured_output=False, description="Find books." + " Ask for words of the title." * 200, title="Search")
def search(
    words: Annotated[
        str, Field(description="What to look for", min_length=2, pattern="^[A-Z]", examples=["Moby Dick"])
    ],
    shelf: Shelf | None = None,
    kind: Literal["novel", "poem"] = "novel",
) -> str:
    return f"{words}: shelf 7"


@server.tool(structured_output=False)
def lend(
    *,
    session: str,
    thread: int,
    tools: list[str],
    tool_choice: str,
    options: dict[str, Any],
    chat_options: dict[str, Any],
    conversation_id: str,
    response_format: str,
) -> str:
    """Lend a book; the arguments have names that frameworks use themselves."""
    return json.dumps([session, thread, tools, tool_choice, options, chat_options, conversation_id, response_format])


@server.tool(structured_output=False)
def declared(ctx: Context) -> str:
    """Return the capabilities that the client declared."""
    params = ctx.session.client_params
    return "unknown" if params is None else params.capabilities.model_dump_json(exclude_none=True)


def listen(listener: socket.socket) -> None:
    """Serve over streamable HTTP."""
    uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="error")).run(sockets=[listener])
