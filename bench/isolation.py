"""What a server of its own costs a trial: seconds and CPU, against one server that all trials share.

Each trial is two model calls and one call of a stdio server: one that the MCP SDK serves, which takes most of a second
of CPU to start, and one without an SDK. Without a hint, keval starts such a server for each trial, ahead of it, and
with `isolation: trial` when the trial begins.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs
from measure import Cost, keval, part

_MODEL = """
import asyncio, json, sys
LATENCY = float(sys.argv[1])
CALL = {"id": "1", "type": "function", "function": {"name": "note", "arguments": "{\\"text\\": \\"it\\"}"}}
def reply(message, reason):
    choice = {"index": 0, "finish_reason": reason, "message": {"role": "assistant", "content": None, **message}}
    body = {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
    body = json.dumps(body).encode()
    head = f"HTTP/1.1 200 OK\\r\\nContent-Type: application/json\\r\\nContent-Length: {len(body)}\\r\\n\\r\\n"
    return head.encode() + body
ASK, ANSWER = reply({"tool_calls": [CALL]}, "tool_calls"), reply({"content": "Done."}, "stop")
async def serve(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b'\\r\\n\\r\\n')
            lines = head.lower().split(b'\\r\\n')
            length = next(int(line[15:]) for line in lines if line.startswith(b'content-length:'))
            asked = json.loads(await reader.readexactly(length))
            await asyncio.sleep(LATENCY)
            writer.write(ANSWER if asked["messages"][-1]["role"] == "tool" else ASK)
    except asyncio.IncompleteReadError:
        writer.close()
async def main():
    server = await asyncio.start_server(serve, '127.0.0.1', 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
asyncio.run(main())
"""
_SDK = """
from mcp.server.mcpserver import MCPServer
server, notes = MCPServer("notes", log_level="WARNING"), []
@server.tool()
def note(text: str) -> str:
    "Notes a text."
    notes.append(text)
    return f"{len(notes)} notes"
server.run("stdio")
"""
_LIGHT = """
import json, sys
INFO = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "notes", "version": "1"}}
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}
RESULTS = {
    "initialize": INFO,
    "tools/list": {"tools": [{"name": "note", "description": "Notes a text.", "inputSchema": SCHEMA}]},
    "tools/call": {"content": [{"type": "text", "text": "noted"}]},
}
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = RESULTS.get(message["method"], {})
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


@attrs.frozen
class Case:
    """A server, and the trials with it: how many, how many at once, and the seconds that a model call takes."""

    name: str
    script: str
    trials: int
    at_once: int
    latency: float
    ways: tuple[str, ...]


WAYS = {
    "started ahead": {},
    "started when asked for": {"isolation": "trial"},
}
CASES = (
    # Models that take a while, so that the servers need less than one core.
    Case("a server without an SDK", _LIGHT, part(48), 8, 1.0, tuple(WAYS)),
    Case("a server of the MCP SDK", _SDK, part(24), 8, 4.0, tuple(WAYS)),
    # Models that answer at once: what the starts take is what the run takes.
    Case("a server of the MCP SDK", _SDK, part(300), 20, 0.05, ("started ahead",)),
)


@contextmanager
def model(latency: float) -> Iterator[None]:
    """Serve a model that asks for the tool and then answers, each after `latency` seconds."""
    command = [sys.executable, "-c", _MODEL, str(latency)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        os.environ.update(OPENAI_BASE_URL=f"http://127.0.0.1:{port}/v1", OPENAI_API_KEY="key-of-nobody")
        yield
        server.communicate()


def run(case: Case, **options: str) -> Cost:
    """Run trials that share a server, or that do not, as the options say."""
    server = {"type": "stdio", "command": sys.executable, "args": ["-c", case.script], **options}
    config = {
        "dataset": {"path": "q.jsonl"},
        "agents": {"openai": {"model": "openai/m"}},
        "contexts": {"notes": server},
        "conditions": {"with_notes": {"contexts": ["notes"]}},
        "metrics": ["basic/tool_called"],
        "execution": {"max_concurrent": case.at_once},
    }
    with tempfile.TemporaryDirectory() as folder:
        return keval(Path(folder), config, case.trials)


def main() -> None:
    for case in CASES[: part(len(CASES))]:
        with model(case.latency):
            shared = run(case, isolation="condition")
            took = f"{case.trials} trials of {2 * case.latency:g} s, {case.at_once} at once, {os.cpu_count()} cores"
            print(f"{case.name}, {took}:")
            print(f"  one for all: {shared.wall:.1f} s and {shared.cpu:.1f} s of CPU, start-up included")
            for way in case.ways:
                own = run(case, **WAYS[way])
                print(f"  one for each, {way}: {own.wall / shared.wall:.2f} times as long ({own.wall:.1f} s),")
                print(f"    and {(own.cpu - shared.cpu) / case.trials * 1000:+.0f} ms of CPU a trial")
    print("wanted, started ahead, with models of 4 s: at most 1.1 times as long")


if __name__ == "__main__":
    main()
