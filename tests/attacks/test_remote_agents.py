"""Remote agents that answer with what is no answer: each such reply is an explained failure, without a traceback."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.attacks.vendor import nested
from tests.conftest import Project

REPLIES = {
    "deep": '{"jsonrpc": "2.0", "id": "1", "result": ' + nested(5_000) + "}",
    "rather-deep": '{"jsonrpc": "2.0", "id": "1", "result": {"message": {"metadata": ' + nested(150) + "}}}",
    "list": "[]",
    "number": "5",
    "null": "null",
    "text": '"x"',
    "no-json": "<html>",
    "empty": "",
    "binary": "\x00\x01",
    "infinite": '{"jsonrpc": "2.0", "id": "1", "result": 1e999}',
    "result-number": '{"jsonrpc": "2.0", "id": "1", "result": 5}',
    "result-null": '{"jsonrpc": "2.0", "id": "1", "result": null}',
    "result-list": '{"jsonrpc": "2.0", "id": "1", "result": []}',
    "error-number": '{"jsonrpc": "2.0", "id": "1", "error": 5}',
    "error-text": '{"jsonrpc": "2.0", "id": "1", "error": "no"}',
    "error-code": '{"jsonrpc": "2.0", "id": "1", "error": {"code": "x", "message": 5, "data": 5}}',
    "error-huge": '{"jsonrpc": "2.0", "id": "1", "error": {"code": 1' + "0" * 400 + "}}",
    "message-number": '{"jsonrpc": "2.0", "id": "1", "result": {"message": 5}}',
    "task-state": '{"jsonrpc": "2.0", "id": "1", "result": {"task": {"id": "1", "status": {"state": 99}}}}',
    "surrogate": '{"jsonrpc": "2.0", "id": "1", "result": {"message": {"parts": [{"text": "\\ud800"}]}}}',
}


@contextmanager
def agent(reply: str, *, streams: bool) -> Iterator[str]:
    """Serve an agent's card, and this reply to every request; yield its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = f"http://{self.headers['host']}/"
            interface = {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
            card = {"name": "a", "description": "a", "version": "1", "capabilities": {"streaming": streams}}
            modes = {"defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"], "skills": []}
            self._send("application/json", json.dumps({**card, **modes, "supportedInterfaces": [interface]}))

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self._send("text/event-stream" if streams else "application/json", f"data: {reply}\n\n" * streams or reply)

        def _send(self, kind: str, text: str) -> None:
            content = text.encode()
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.slow
@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("reply", REPLIES)
def test_what_is_no_reply_of_an_agent_is_an_explained_failure(project: Project, reply: str, *, streams: bool) -> None:
    with agent(REPLIES[reply], streams=streams) as url:
        config = {
            "dataset": {"path": "q.jsonl"},
            "agents": {"a": {"type": "a2a", "url": url}},
            "metrics": ["basic/turns"],
            "execution": {"timeout_seconds": 5, "retry": {"max_attempts": 1}},
        }
        project.write(q_jsonl='{"id": "a", "question": "Why?"}\n', eval_yaml=json.dumps(config))

        outcome = project.keval("run", "eval.yaml", "-q")

    (trial,) = project.lines("trials.jsonl")
    assert 3 == outcome.code
    assert trial["failure"]["traceback"] is None, trial["failure"]
