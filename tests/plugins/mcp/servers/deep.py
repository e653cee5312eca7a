"""A server with JSON that is nested deeply: `python deep.py LISTED RETURNED BESIDE` over stdio, and `app` over HTTP.

All three are levels: of a tool, of a result, and of what stands beside the tools. It writes JSON by hand, as no library
writes so many.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

INFO = '{"name":"deep","version":"1"}'
RECURSIVE = '{"type":"object","properties":{"a":{"$ref":"#"},"b":{"$ref":"#/properties/b"}}}'
"""A schema of itself, which is nested without an end and written in a line."""


def nested(levels: int) -> str:
    return '{"anyOf":[' * (levels // 2) + "{}" + "]}" * (levels // 2)


def reply(message: dict[str, Any], listed: int, returned: int = 0, beside: int = 0) -> str | None:
    """Return what answers a message; nothing for a notification."""
    number, method = message.get("id"), message["method"]
    first, last = (
        f'{{"name":"{name}","inputSchema":{RECURSIVE},"description":"Has a \\\\ and a \\" and a {{"}}'
        for name in ("first", "last")
    )
    look = f'{{"inputSchema":{nested(listed)},"name":"look"}}'
    results = {
        "initialize": f'{{"protocolVersion":"2025-06-18","capabilities":{{"tools":{{}}}},"serverInfo":{INFO}}}',
        "tools/list": f'{{"_meta":{nested(beside)},"tools":[{first},{look},{last}]}}',
        "tools/call": f'{{"content":[],"structuredContent":{nested(returned)}}}',
    }
    if number is None or method not in results:
        return None if number is None else f'{{"jsonrpc":"2.0","id":{number},"error":{{"code":-32601,"message":"no"}}}}'
    return f'{{"jsonrpc":"2.0","id":{number},"result":{results[method]}}}'


def app(levels: int, form: str) -> ASGIApp:
    """Return the server over streamable HTTP, with `json` or `events` as its answers, or over `sse`."""
    said: asyncio.Queue[str] = asyncio.Queue()

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        async def answer(status: int, kind: bytes, body: str, *, more: bool = False) -> None:
            await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", kind)]})
            await send({"type": "http.response.body", "body": body.encode(), "more_body": more})

        if scope["method"] != "POST" and form == "sse":
            await answer(200, b"text/event-stream", "event: endpoint\ndata: /messages\n\n", more=True)
            while True:
                event = f"data: {await said.get()}\n\n"
                await send({"type": "http.response.body", "body": event.encode(), "more_body": True})
        if scope["method"] != "POST":
            return await answer(405, b"text/plain", "")
        body = b""
        while (piece := await receive())["type"] == "http.request":
            body += piece["body"]
            if not piece["more_body"]:
                break
        told = reply(json.loads(body), levels)
        if told is None or form == "sse":
            if told is not None:
                said.put_nowait(told)
            return await answer(202, b"text/plain", "")
        if form == "events":
            return await answer(200, b"text/event-stream", f"data: {told}\n\n")
        return await answer(200, b"application/json", told)

    return serve


if __name__ == "__main__":
    for line in sys.stdin:
        if (told := reply(json.loads(line), *map(int, sys.argv[1:]))) is not None:
            sys.stdout.write(told + "\n")
            sys.stdout.flush()
