"""A server without the SDK's comforts: it pages its tools, refuses calls, answers with data alone or with nonsense."""

import asyncio
from typing import Any

from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    Tool,
)


async def list_tools(context: Any, params: PaginatedRequestParams | None) -> ListToolsResult:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    if params is None or params.cursor is None:
        return ListToolsResult(tools=[Tool(name="refuse", input_schema=schema)], next_cursor="2")
    return ListToolsResult(tools=[Tool(name="data", description="Data alone", input_schema=schema)])


async def call_tool(context: Any, params: CallToolRequestParams) -> CallToolResult:
    if params.name == "nonsense":
        return CallToolResult.model_construct(content="no list")
    if params.name == "refuse":
        raise MCPError(INVALID_PARAMS, "there is no such city", {"city": "Atlantis"})
    return CallToolResult(content=[], structured_content={"temperature": -3, "wind": None})


async def main() -> None:
    server = Server("plain", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


asyncio.run(main())
