"""What a server of its own costs a trial: seconds and CPU at 8 trials at once, against one server that they share.

Each trial is two model calls, which take a while, and one call of a stdio server: one that the MCP SDK serves, which
takes most of a second of CPU to start, and one without an SDK. Without a hint, keval starts such a server for each
trial, ahead of it; with `isolation: trial` when the trial begins.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from measure import Cost, keval, part

AT_ONCE = 8

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
SERVERS = [("a server without an SDK", _LIGHT, part(48), 1.0), ("a server of the MCP SDK", _SDK, part(24), 4.0)]
"""The name, the script, how many trials, and what a model call takes, so that the servers need less than one core."""


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


def run(script: str, isolation: str, trials: int) -> Cost:
    """Run trials that share a server, or that do not."""
    server = {"type": "stdio", "command": sys.executable, "args": ["-c", script], "isolation": isolation}
    config = {
        "dataset": {"path": "q.jsonl"},
        "agents": {"openai": {"model": "openai/m"}},
        "contexts": {"notes": server},
        "conditions": {"with_notes": {"contexts": ["notes"]}},
        "metrics": ["basic/tool_called"],
        "execution": {"max_concurrent": AT_ONCE},
    }
    with tempfile.TemporaryDirectory() as folder:
        return keval(Path(folder), config, trials)


def main() -> None:
    for name, script, trials, latency in SERVERS[: part(len(SERVERS))]:
        with model(latency):
            shared = run(script, "condition", trials)
            print(f"{name}, {trials} trials of {2 * latency:g} s at {AT_ONCE} at once, {os.cpu_count()} cores;")
            print(f"  one for all: {shared.wall * AT_ONCE / trials:.2f} s a trial, start-up included")
            for isolation, way in (("auto", "ahead"), ("trial", "when asked for")):
                own = run(script, isolation, trials)
                wall, cpu = (own.wall - shared.wall) * AT_ONCE / trials, (own.cpu - shared.cpu) / trials
                print(
                    f"  one for each, started {way}: {wall:+.2f} s a trial, {own.wall / shared.wall:.2f} times as long,"
                )
                print(f"    and {cpu * 1000:+.0f} ms of CPU a trial")
    print("wanted, started ahead: at most 1.1 times as long")


if __name__ == "__main__":
    main()
