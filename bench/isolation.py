"""What a server of its own costs a trial: seconds and CPU at 8 trials at once, against one server that they share.

Each trial is two model calls, which take four seconds each, and one call of a stdio server that the MCP SDK serves.
Without a hint, keval starts such a server for each trial, ahead of it; with `isolation: trial` when the trial begins.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from measure import Cost, keval

TRIALS, LATENCY, AT_ONCE = 24, 4.0, 8

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
_SERVER = """
from mcp.server.mcpserver import MCPServer
server, notes = MCPServer("notes", log_level="WARNING"), []
@server.tool()
def note(text: str) -> str:
    "Notes a text."
    notes.append(text)
    return f"{len(notes)} notes"
server.run("stdio")
"""


@contextmanager
def model() -> Iterator[int]:
    """Serve a model that asks for the tool and then answers, each after a while; yields its port."""
    command = [sys.executable, "-c", _MODEL, str(LATENCY)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        yield int(server.stdout.readline())
        server.communicate()


def run(isolation: str, trials: int) -> Cost:
    """Run trials that share a server, or that do not."""
    server = {"type": "stdio", "command": sys.executable, "args": ["-c", _SERVER], "isolation": isolation}
    config = {
        "dataset": {"path": "q.jsonl"},
        "agents": {"openai": {"model": "openai/m", "api": "chat"}},
        "contexts": {"notes": server},
        "conditions": {"with_notes": {"contexts": ["notes"]}},
        "metrics": ["basic/tool_called"],
        "execution": {"max_concurrent": AT_ONCE},
    }
    with tempfile.TemporaryDirectory() as folder:
        return keval(Path(folder), config, trials)


def main() -> None:
    with model() as port:
        os.environ.update(OPENAI_BASE_URL=f"http://127.0.0.1:{port}/v1", OPENAI_API_KEY="key-of-nobody")
        shared = run("condition", TRIALS)
        ways = {"started ahead (auto)": run("auto", TRIALS), "started when asked for (trial)": run("trial", TRIALS)}
    seconds = shared.wall * AT_ONCE / TRIALS
    print(f"{TRIALS} trials of {2 * LATENCY:g} s at {AT_ONCE} at once, {os.cpu_count()} cores; one server for all:")
    print(f"  {seconds:.2f} s and {shared.cpu / TRIALS * 1000:.0f} ms of CPU per trial, start-up included")
    for way, cost in ways.items():
        added = (cost.wall - shared.wall) * AT_ONCE / TRIALS
        print(f"a server for each, {way}: {added:+.2f} s per trial, {cost.wall / shared.wall:.2f} times as long;")
        print(f"  {(cost.cpu - shared.cpu) / TRIALS * 1000:+.0f} ms of CPU per trial")
    print("wanted, started ahead: at most 1.1 times as long")


if __name__ == "__main__":
    main()
