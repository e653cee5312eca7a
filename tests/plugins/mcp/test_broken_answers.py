"""An answer that breaks off, cannot be read or is a refusal loses its call at once and says what came."""

from __future__ import annotations

import asyncio
import json
import math
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import MCPError

from keval.errors import PreflightError
from keval_mcp import Http, Sse, Stdio
from keval_mcp.tap.agent_session import encoded
from tests.contexts import started

_RESULTS = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "it", "version": "1"},
    },
    "tools/list": {"tools": [{"name": "look", "inputSchema": {"type": "object"}}]},
}
_BEGUN = '{"jsonrpc":"2.0","id":ID,"result":{"content":[{"ty'
_PAGE = "<html><title>Bad\n gateway</title><p>" + "x" * 5000
_REFUSED = '{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"no such thing"}}'
_NAN = '{"jsonrpc":"2.0","id":ID,"result":{"content":[],"structuredContent":{"a":NaN}}}'
_SURROGATE = r'{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"\ud800"}]}}'


_WAIT = ": waiting\n\n"


def _events(body: str, length: int | None = None) -> str:
    return _http(body, kind="text/event-stream", length=length)


def _http(body: str, status: str = "200 OK", kind: str = "application/json", length: int | None = None) -> str:
    head = f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\n"
    return f"{head}content-length: {len(body) if length is None else length}\r\n\r\n{body}"


_ACCEPTED = _http("", "202 Accepted")


def _answer(message: dict[str, Any]) -> str:
    result = _RESULTS.get(message["method"])
    said = {"error": {"code": -32601, "message": "not known"}} if result is None else {"result": result}
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], **said})


@asynccontextmanager
async def _served(answer: str, resumed: str | None = None) -> AsyncIterator[str]:
    """Serve a tool whose calls get `answer`; `resumed` answers who asks for the rest."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = next((line for line in head.split(b"\r\n") if line.startswith(b"content-length:")), b":0")
        body = await reader.readexactly(int(length.partition(b":")[2]))
        message = json.loads(body) if body else {}
        if message.get("method") == "tools/call":
            asked.append(message["id"])
            said = answer.replace("ID", f"{message['id']:>2}")
        elif "id" in message:
            said = _http(_answer(message))
        elif b"last-event-id" in head and resumed is not None:
            said = resumed.replace("ID", str(asked[-1]))
        else:
            said = _http("", "202 Accepted" if message else "405 Method Not Allowed")
        writer.write(said.encode())
        if said.endswith(_WAIT):
            await reader.read()
        writer.close()
        await writer.wait_closed()

    asked: list[int] = []
    listener = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with listener:
        yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/mcp"


@pytest.mark.parametrize(
    ("answer", "problem", "is_lost"),
    [
        (_http(_BEGUN, length=900), "answered 'look' with a body that broke off: peer closed connection", True),
        (_http(f"data: {_BEGUN}", kind="text/event-stream", length=900), "was lost during 'look'", True),
        (_http(": nothing\n\n", kind="text/event-stream"), "was lost during 'look'", True),
        ("", "was lost during 'look': its answer broke off: Server disconnected", True),
        (_http(_SURROGATE), "answered 'look' with something that is no MCP message", True),
        (_http(_NAN), "answered 'look' with NaN or Infinity, which is no JSON", True),
        (
            _http("quota exceeded\n for this key", "403 Forbidden", "text/plain"),
            "answered 'look' with HTTP 403 Forbidden: quota exceeded for this key",
            True,
        ),
        (_http('{"detail": "no key"}', "400 Bad Request"), "answered 'look' with HTTP 400 Bad Request: no key", True),
        (_http(_PAGE, "502 Bad Gateway", "text/html"), "answered 'look' with HTTP 502 Bad Gateway: Bad gateway", True),
        (_http(_REFUSED, "400 Bad Request"), "no such thing", False),
    ],
)
def test_call_over_http_is_lost_at_once_and_by_itself(
    attempt: Callable[..., Any], caplog: pytest.LogCaptureFixture, answer: str, problem: str, is_lost: bool
) -> None:
    async def run() -> tuple[str, Any, int]:
        async with (
            _served(answer) as url,
            started(Http(url=url, timeout=20, isolation="condition"), "it") as source,
            asyncio.timeout(8),
            attempt(source) as tapped,
        ):
            try:
                told = await tapped.call("look")
            except MCPError as refused:
                told = refused.message
            async with attempt(source, "later"):
                return told, tapped.log, tapped.log.calls[0].executions

    told, log, executions = asyncio.run(run())

    expected = f"server 'it' {problem}" if is_lost else problem
    assert expected in told
    assert (is_lost, 1) == (log.lost is not None, executions)
    assert [] == [record for record in caplog.records if record.name == "keval_mcp"]  # it is not connected to again


_FIRST = "id: 1\nretry: 1\ndata:\n\n"
_FOUND = 'id: 2\ndata: {"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"found"}]}}\n\n'


@pytest.mark.parametrize(
    ("answer", "resumed", "told"),
    [
        (_events(f"{_FIRST}data: {_BEGUN}", 900), _events(_FOUND), "found"),
        (_events(_FIRST), _events(_FOUND), "found"),
        (_events(_FIRST, 900), _events(_FIRST + _WAIT, 900), "its answer broke off: peer closed"),
        (_events(f"{_FIRST}data: {_BEGUN}", 900), _events(_WAIT, 900), "the server did not send it again within 0.2 s"),
        (_events(f"{_FIRST}data: {_BEGUN}"), _events(_WAIT, 900), "the server did not send it again within 0.2 s"),
        (_events(_FIRST), _events(": nothing\n\n"), "the server does not know it any more"),
    ],
)
def test_stream_that_broke_off_is_resumed_or_lost(
    attempt: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, answer: str, resumed: str, told: str
) -> None:
    monkeypatch.setattr("keval_mcp.server.transports.RESUME_SECONDS", 0.2)

    async def run() -> tuple[str, str | None]:
        async with (
            _served(answer, resumed) as url,
            started(Http(url=url, timeout=1, isolation="condition"), "it") as source,
            attempt(source) as tapped,
        ):
            return await tapped.call("look"), tapped.log.lost

    found, lost = asyncio.run(run())

    assert told in found
    assert (None if told == "found" else found) == lost


def _script(folder: Path, answer: str) -> str:
    """Write a server over stdio that answers a call by the statements `answer`."""
    path = folder / "server.py"
    path.write_text(
        f"""import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "tools/call":
        {answer}
    elif "id" in asked:
        result = {_RESULTS!r}.get(asked["method"])
        said = {{"error": {{"code": -32601, "message": "not known"}}}} if result is None else {{"result": result}}
        print(json.dumps({{"jsonrpc": "2.0", "id": asked["id"], **said}}), flush=True)
""",
        encoding="utf-8",
    )
    return str(path)


@pytest.mark.parametrize(
    "answer",
    [
        _SURROGATE,
        '{"jsonrpc":"2.0","id":ID,"result":3}',
        '{"jsonrpc":"2.0","id":ID}',
        '{"jsonrpc":"1.0","id":ID,"result":{"content":[]}}',
        '{"id":"ID","result":{"content":[],"method":"x"}}',
        '[{"jsonrpc":"2.0","id":ID,"result":{"content":[]}}]',
    ],
)
def test_answer_over_stdio_that_cannot_be_read_is_told_at_once(
    outcomes: Callable[..., Any], tmp_path: Path, answer: str
) -> None:
    script = _script(tmp_path, f"print({answer!r}.replace('ID', str(asked['id'])), flush=True)")

    provider = Stdio(command=sys.executable, args=(script,), timeout=20, isolation="condition")
    (((problem,), log),) = outcomes(provider, [("look", {})])

    assert problem.startswith("server 'every' answered 'look' with something that is no MCP message: ")
    assert problem == log.lost


_SAID = {"notification": '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":NaN}}'}
_SAID["request"] = '{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{"temperature":NaN}}'


@pytest.mark.parametrize(
    ("statements", "problem"),
    [
        (
            f"print({_SAID['notification']!r}); told = 'fine'",
            "sent notifications/message with NaN or Infinity, which is no JSON: it is left out",
        ),
        (
            f"print({_SAID['request']!r}, flush=True); told = json.loads(sys.stdin.readline())['error']['message']",
            "sampling/createMessage holds NaN or Infinity, which is no JSON",
        ),
    ],
)
def test_what_a_server_says_with_nan_reaches_no_agent(
    outcomes: Callable[..., Any],
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
    statements: str,
    problem: str,
) -> None:
    answer = "{'content': [{'type': 'text', 'text': told}]}"
    print_it = f"print(json.dumps({{'jsonrpc': '2.0', 'id': asked['id'], 'result': {answer}}}), flush=True)"
    script = _script(tmp_path, f"{statements}; {print_it}")

    (((told,), log),) = outcomes(Stdio(command=sys.executable, args=(script,), isolation="condition"), [("look", {})])

    assert log.lost is None
    assert problem in told or problem in caplog.text


def test_server_that_lists_nan_does_not_come_up(outcomes: Callable[..., Any], tmp_path: Path) -> None:
    path = Path(_script(tmp_path, "pass"))
    path.write_text(
        path.read_text(encoding="utf-8").replace("'type': 'object'", "'type': 'object', 'default': float('inf')"),
        encoding="utf-8",
    )

    with pytest.raises(PreflightError, match="did not come up: it answered with NaN or Infinity, which is no JSON"):
        outcomes(Stdio(command=sys.executable, args=(str(path),), isolation="condition"), [("look", {})])


@pytest.mark.parametrize("answer", [{"result": {"structuredContent": {"a": math.nan}}}, {"result": {"a": [math.inf]}}])
def test_tap_refuses_in_place_of_an_answer_that_is_no_json(answer: dict[str, Any]) -> None:
    error = {"code": -32603, "message": "the answer holds NaN or Infinity, which is no JSON"}

    assert {"jsonrpc": "2.0", "id": 1, "error": error} == json.loads(encoded({"jsonrpc": "2.0", "id": 1, **answer}))


@pytest.mark.parametrize(
    ("posted", "event", "problem"),
    [
        (_ACCEPTED, None, "was lost during 'look'"),
        (_ACCEPTED, _BEGUN, "was lost during 'look'"),
        (_ACCEPTED, _SURROGATE + "\n\n", "answered 'look' with something that is no MCP message: "),
        (_ACCEPTED, '{"jsonrpc":"2.0","id":ID}\n\n', "answered 'look' with something that is no MCP message: "),
        (_http("no", "503 Busy", "text/plain"), "WAIT", "answered 'look' with HTTP 503 Busy: no"),
        ("", "WAIT", "was lost during 'look'"),
    ],
)
def test_call_over_sse_is_lost_at_once(
    attempt: Callable[..., Any], posted: str, event: str | None, problem: str
) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if head.startswith(b"GET"):
            streams.append(writer)
            writer.write(_events("event: endpoint\ndata: /messages\n\n", 9000).encode())
            await reader.read()
            writer.close()
            await writer.wait_closed()
            return
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        message = json.loads(await reader.readexactly(int(length.partition(b":")[2])))
        stream, is_call = streams[-1], message["method"] == "tools/call"
        writer.write((posted if is_call else _ACCEPTED).encode())
        writer.close()
        await writer.wait_closed()
        if not is_call:
            said = f"{_answer(message)}\n\n" if "id" in message else None
        else:
            said = None if event is None else event.replace("ID", str(message["id"]))
        if said is not None and said != "WAIT":
            stream.write(f"event: message\ndata: {said}".encode())
        if is_call and said != "WAIT" and not str(said).endswith("\n\n"):
            stream.close()

    streams: list[asyncio.StreamWriter] = []

    async def run() -> tuple[str, str | None]:
        listener = await asyncio.start_server(handle, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/sse"
        async with (
            listener,
            started(Sse(url=url, timeout=20, isolation="condition"), "it") as source,
            asyncio.timeout(8),
            attempt(source) as tapped,
        ):
            return await tapped.call("look"), tapped.log.lost

    told, lost = asyncio.run(run())

    assert told.startswith(f"server 'it' {problem}")
    assert told == lost
