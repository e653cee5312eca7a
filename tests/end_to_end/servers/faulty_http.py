"""An MCP server over streamable HTTP or SSE that goes wrong in a way when it is called for Helsinki, once."""

from __future__ import annotations

import gzip
import json
import queue
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

import attrs

__all__ = ["serving"]

TOOL = {
    "name": "get_current_weather",
    "description": "Get the current weather in a city.",
    "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
Stream: TypeAlias = "queue.Queue[bytes | None]"


@contextmanager
def serving(way: str, transport: str = "http", together: int = 1) -> Iterator[str]:
    """Serve on loopback and yield the URL.

    The way `killed` goes wrong every time, and takes with it all calls under way; these are `together` the first time.
    """
    state = _State(way, transport, threading.Barrier(together))
    server = _Server(("127.0.0.1", 0), type("Faulty", (_Handler,), {"state": state}))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/{'sse' if transport == 'sse' else 'mcp'}"
    finally:
        state.closing.set()
        state.restart()
        server.shutdown()
        thread.join()
        server.server_close()


@attrs.define
class _State:
    way: str
    transport: str
    together: threading.Barrier
    done: bool = False
    start: int = 0
    """How often it started anew; sessions of an earlier start are unknown."""
    down_until: float = 0.0
    closing: threading.Event = attrs.field(factory=threading.Event)
    killed: threading.Event = attrs.field(factory=threading.Event)
    streams: dict[str, Stream] = attrs.field(factory=dict)

    def restart(self, down: float = 0.0) -> None:
        """Forget every session, and take no connection for some seconds."""
        self.start, self.down_until = self.start + 1, time.monotonic() + down
        streams, self.streams = self.streams, {}
        for stream in streams.values():
            stream.put(None)


class _Server(ThreadingHTTPServer):
    request_queue_size = 128


class _Handler(BaseHTTPRequestHandler):
    state: _State
    stream: Stream | None = None
    accepted = False

    def do_GET(self) -> None:
        state = self.state
        if "last-event-id" in self.headers:
            self._send(200, b"", "text/event-stream")
        elif state.transport != "sse":
            self._send(405, b"")
        elif time.monotonic() > state.down_until:
            stream: Stream = queue.Queue()
            path = f"/messages/{state.start}-{id(stream)}"
            state.streams[path] = stream
            stream.put(b"event: endpoint\ndata: " + path.encode())
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            try:
                while (event := stream.get()) is not None:
                    self.wfile.write(event + b"\n\n")
            except ConnectionError:  # keval has read enough
                self.close_connection = True

    def do_POST(self) -> None:
        state = self.state
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if time.monotonic() < state.down_until:
            return
        self.stream = state.streams.get(self.path)
        known = self.headers.get("mcp-session-id") in (None, str(state.start))
        if not (known if state.transport == "http" else self.stream):
            self._send(404, b"no such session", "text/plain")
        elif "id" not in message:
            self._send(202, b"")
        elif message["method"] == "tools/call":
            self._accept()
            self._call(message["id"], message["params"]["arguments"]["city"])
        else:
            self._accept()
            self._answer(message["id"], _about_itself(message["method"]))

    def _accept(self) -> None:
        # One that hangs does not even accept the message, and holds up what the client sends after it.
        if self.stream is not None and self.state.way not in ("hangs", "unavailable"):
            self._send(202, b"")
            self.accepted = True

    def _call(self, number: int, city: str) -> None:
        state = self.state
        first = state.start == 0
        if first and not state.done:
            state.together.wait(30)
        if city == "Helsinki" and (state.way == "killed" or not state.done):
            state.done = True
            self._fail(number)
        elif first and state.way == "killed":
            state.killed.wait(30)
        else:
            said = f"It is 3 degrees in {city} with light rain."
            self._answer(number, {"content": [{"type": "text", "text": said}]})

    def _fail(self, number: int) -> None:
        state = self.state
        large = {"content": [{"type": "text", "text": "x" * 3_000_000}]}
        body = json.dumps({"jsonrpc": "2.0", "id": number, "result": large}).encode()
        match state.way:
            case "hangs":
                state.closing.wait(60)
            case "restarts":
                state.restart(down=0.6)
            case "forgets":
                state.restart()
            case "killed":
                state.restart()
                state.killed.set()
            case "drops" if self.stream:
                self.stream.put(None)
            case "drops":
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", "1000")
                self.end_headers()
                self.wfile.write(b'{"jsonrpc"')
                self.close_connection = True
            case "breaks-event":
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                self.wfile.write(b'id: 1\nretry: 1\ndata:\n\ndata: {"jsonrpc"')
                self.close_connection = True
            case "unavailable":
                self._send(503, b"<h1>Service Unavailable</h1>", "text/html")
            case "junk":
                self._say(b"<h1>Welcome</h1>")
            case "web-page":
                self._send(200, b"<h1>Welcome</h1>", "text/html")
            case "large":
                self._say(body)
            case "large-compressed":
                self._send(200, gzip.compress(body), "application/json", ("content-encoding", "gzip"))
            case "large-event":
                self._send(200, b"event: message\ndata: " + body + b"\n\n", "text/event-stream")

    def _answer(self, number: int, result: dict[str, Any] | None) -> None:
        outcome = {"error": {"code": -32601, "message": "no such method"}} if result is None else {"result": result}
        self._say(json.dumps({"jsonrpc": "2.0", "id": number, **outcome}).encode())

    def _say(self, body: bytes) -> None:
        if self.stream is None:
            self._send(200, body, "application/json", ("mcp-session-id", str(self.state.start)))
        else:
            if not self.accepted:
                self._send(202, b"")
            self.stream.put(b"event: message\ndata: " + body)

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


def _about_itself(method: str) -> dict[str, Any] | None:
    match method:
        case "initialize":
            info = {"name": "faulty", "version": "1"}
            return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            return {"tools": [TOOL]}
    return None
