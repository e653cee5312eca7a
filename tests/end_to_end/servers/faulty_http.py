"""An MCP server over streamable HTTP that goes wrong in a way when it is called for Helsinki, once."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["serving"]

TOOL = {
    "name": "get_current_weather",
    "description": "Get the current weather in a city.",
    "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


@contextmanager
def serving(way: str) -> Iterator[str]:
    """Serve on loopback and yield the URL."""
    closing = threading.Event()

    class Faulty(BaseHTTPRequestHandler):
        done = False

        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if "id" not in message:
                self._send(202, b"")
                return
            params = message.get("params") or {}
            asked = params.get("arguments") or {}
            if message["method"] == "tools/call" and asked["city"] == "Helsinki" and not Faulty.done:
                Faulty.done = True
                self._fail(message["id"])
            else:
                self._answer(message["id"], _result(message["method"], asked))

        def do_GET(self) -> None:
            self._send(405, b"")

        def _fail(self, number: int) -> None:
            large = {"content": [{"type": "text", "text": "x" * 3_000_000}]}
            body = json.dumps({"jsonrpc": "2.0", "id": number, "result": large}).encode()
            match way:
                case "hangs":
                    closing.wait(60)
                case "drops":
                    self.send_response(200)
                    self.send_header("content-type", "application/json")
                    self.send_header("content-length", "1000")
                    self.end_headers()
                    self.wfile.write(b'{"jsonrpc"')
                    self.close_connection = True
                case "unavailable":
                    self._send(503, b"<h1>Service Unavailable</h1>", "text/html")
                case "junk":
                    self._send(200, b"<h1>Welcome</h1>")
                case "web-page":
                    self._send(200, b"<h1>Welcome</h1>", "text/html")
                case "large":
                    self._send(200, body)
                case "large-compressed":
                    self._send(200, gzip.compress(body), "application/json", ("content-encoding", "gzip"))
                case "large-event":
                    self._send(200, b"event: message\ndata: " + body + b"\n\n", "text/event-stream")

        def _answer(self, number: int, result: dict[str, Any] | None) -> None:
            outcome = {"error": {"code": -32601, "message": "no such method"}} if result is None else {"result": result}
            self._send(200, json.dumps({"jsonrpc": "2.0", "id": number, **outcome}).encode())

        def _send(self, status: int, body: bytes, kind: str = "application/json", *headers: tuple[str, str]) -> None:
            self.send_response(status)
            for name, value in (("content-type", kind), ("content-length", str(len(body))), *headers):
                self.send_header(name, value)
            self.end_headers()
            try:
                self.wfile.write(body)
            except ConnectionError:  # keval has read enough
                self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Faulty)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/mcp"
    finally:
        closing.set()
        server.shutdown()
        thread.join()
        server.server_close()


def _result(method: str, asked: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "initialize":
            info = {"name": "faulty", "version": "1"}
            return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            return {"tools": [TOOL]}
        case "tools/call":
            return {"content": [{"type": "text", "text": f"It is 3 degrees in {asked['city']} with light rain."}]}
    return None
