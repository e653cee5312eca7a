"""A server of pages that writes down which call of which trial reached it: over stdio, HTTP or SSE, all alike."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path

from tests.stdio_server import answer_each

TYPE_CHECKING = False  # see tests.stdio_server
if TYPE_CHECKING:
    from typing import Any

INSTRUCTIONS = "Search before you open a page."
PAGES = {417: "To restart the gateway, run `frobnicate --gently`.", 418: "Lunch is at noon."}
TOOLS: list[dict[str, Any]] = [
    {
        "name": "search",
        "title": "Search the handbook",
        "description": "Finds pages of the handbook by the words in them; the best match is the first one.",
        "inputSchema": {
            "type": "object",
            "properties": {"query": {"type": "string", "description": "What to find, in words of the handbook."}},
            "required": ["query"],
        },
        "outputSchema": {
            "type": "object",
            "properties": {
                "pages": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "id": {"type": "integer"},
                            "title": {"type": "string"},
                            "kind": {"enum": ["guide", "note", "plan"]},
                        },
                    },
                }
            },
            "required": ["pages"],
        },
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "open_page",
        "description": "Returns a page by its id.",
        "inputSchema": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]},
        "annotations": {"readOnlyHint": True},
    },
]


def answer(record: Path, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Answer a request, and write a call into `record`."""
    if method == "tools/list":
        return {"tools": TOOLS}
    if method != "tools/call":
        raise LookupError(method)
    trial = (params.get("_meta") or {}).get("keval/trial")
    arguments = params["arguments"]
    with record.open("a", encoding="utf-8") as file:
        file.write(json.dumps([trial, params["name"], arguments]) + "\n")
    if params["name"] == "search":
        found = {"pages": [{"id": 417, "title": f"About {arguments['query']}", "kind": "guide"}]}
        return {"content": [{"type": "text", "text": json.dumps(found)}], "structuredContent": found}
    page = PAGES.get(arguments["id"])
    said = f"no page {arguments['id']}" if page is None else f"{page} (asked by {trial})"
    return {"content": [{"type": "text", "text": said}], "isError": page is None}


def listen(listener: socket.socket, record: str) -> None:
    """Serve over streamable HTTP at /mcp and over SSE at /sse."""
    import uvicorn
    from mcp.server.lowlevel import Server
    from mcp.server.sse import SseServerTransport
    from mcp.types import CallToolResult, ListToolsResult, Tool
    from starlette.requests import Request
    from starlette.responses import Response

    async def list_tools(context: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=[Tool.model_validate(tool) for tool in TOOLS])

    async def call_tool(context: Any, params: Any) -> CallToolResult:
        request = {"name": params.name, "arguments": params.arguments, "_meta": context.meta}
        return CallToolResult.model_validate(answer(Path(record), "tools/call", request))

    server: Server[Any] = Server(
        "docs", version="1", instructions=INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool
    )
    app = server.streamable_http_app(stateless_http=True, json_response=True)
    events = SseServerTransport("/messages/")

    async def serve_events(request: Request) -> Response:
        async with events.connect_sse(request.scope, request.receive, request._send) as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
        return Response()

    app.add_route("/sse", serve_events)
    app.mount("/messages/", events.handle_post_message)
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])


if __name__ == "__main__":
    answer_each("docs", lambda method, params: answer(Path(sys.argv[1]), method, params), INSTRUCTIONS)
