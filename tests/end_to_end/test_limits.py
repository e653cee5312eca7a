"""Replies and results that are too large fail the attempt as what they are, and keval reads no further."""

from __future__ import annotations

import asyncio
import hashlib
import json
import resource
import sys
import threading
import zlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest

from keval_mcp.server.bodies import TooLargeError, bound
from tests.conftest import Project
from tests.stdio_server import ENVIRONMENT

pytestmark = pytest.mark.usefixtures("simulated_here")


def _bomb() -> bytes:
    """A reply that inflates to 300 MB: one packed megabyte, again and again, and no end."""
    packer = zlib.compressobj(wbits=31)
    start, megabyte = (packer.compress(data) + packer.flush(zlib.Z_FULL_FLUSH) for data in (b'{"id": "', b" " * 10**6))
    return start + 300 * megabyte


BOMB = _bomb()


@pytest.fixture
def bulky(weather: Callable[..., Project]) -> Callable[..., dict[str, Any]]:
    """Runs one trial of an agent with a tool that returns so many bytes, and gives the trial."""

    def run(size: int, agent: str = "openai", execution: str = "", options: dict[str, Any] | None = None) -> Any:
        root = Path.cwd()
        command = ["-m", "tests.end_to_end.servers.bulky", str(root)]
        server = {"type": "stdio", "command": sys.executable, "args": command, "env": ENVIRONMENT, **(options or {})}
        project = weather(
            ("gadk: ", f"{agent}: "),
            ("weather: {}", f"weather: {json.dumps(server)}"),
            ("execution: {", f"execution: {{{execution}"),
        )
        (root / "size").write_text(str(size), encoding="ascii")
        outcome = project.run("eval.yaml", "--condition", "with_weather", "--sample-id", "helsinki-now")
        (trial,) = project.lines("trials.jsonl")
        return project, outcome.code, trial

    return run


def test_a_result_that_is_too_large_is_a_failure_of_its_kind(bulky: Callable[..., Any]) -> None:
    _, code, trial = bulky(200_000, "openai", "max_result_bytes: 100 KB, ")

    assert (3, "mcp", "result_too_large") == (code, trial["failure"]["stage"], trial["failure"]["kind"])
    assert "a result of more than 100,000 bytes; raise execution.max_result_bytes" in trial["failure"]["message"]
    assert ["result_too_large"] * 2 == [attempt["failure"]["kind"] for attempt in trial["attempts"]]


@pytest.mark.parametrize("kept", [False, True])
def test_a_large_result_is_cut_in_the_record(bulky: Callable[..., Any], kept: bool) -> None:
    execution = f"max_recorded_bytes: 1000, keep_large_results: {str(kept).lower()}, "
    project, _, trial = bulky(5000, "openai", execution)

    sha256 = hashlib.sha256(b"x" * 5000).hexdigest()
    expected = "x" * 1000 + f"… (5000 bytes, SHA-256 {sha256})"
    calls = [call["result"] for call in trial["transcript"]["tool_calls"]]
    assert [expected] * max(1, len(calls)) == calls
    assert calls == [each["text"] for each in trial["transcript"]["messages"] if each["role"] == "tool"]
    offered = project.read("manifest.json")["conditions"]["with_weather"]["servers"]["weather"]["listing"]
    others = {trial["transcript"]["request"], offered}
    blobs = [path for path in project.run_directory().glob("blobs/*") if path.name not in others]
    assert [sha256] * kept == [blob.stem for blob in blobs]
    assert [b"x" * 5000] * kept == [blob.read_bytes() for blob in blobs]


EVENT = b"data: " + b"x" * 94


@pytest.mark.parametrize(
    "chunks",
    [(EVENT + b"\n\n",), (EVENT + b"\n", b"\n"), (EVENT + b"\r\n\r", b"\n"), (EVENT + b"\r\r",), (EVENT, b"\r", b"\r")],
)
def test_each_event_of_a_stream_counts_for_itself(chunks: tuple[bytes, ...]) -> None:
    assert 100 * sum(map(len, chunks)) == asyncio.run(_read(chunks * 100))


def test_lines_of_one_event_count_together() -> None:
    with pytest.raises(TooLargeError):
        asyncio.run(_read((EVENT + b"\r\n", EVENT + b"\r", b"\n") * 100))


async def _read(chunks: Sequence[bytes]) -> int:
    """Read a stream of events of at most 1,000 bytes each; returns how many bytes came."""

    class Stream(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            for chunk in chunks:
                yield chunk

    request, headers = httpx2.Request("GET", "http://server.example"), {"content-type": "text/event-stream"}
    response = httpx2.Response(200, headers=headers, stream=Stream(), request=request)
    bound(response, 1000, lambda error: None)
    return sum([len(chunk) async for chunk in response.aiter_raw()])


class _Bomb(BaseHTTPRequestHandler):
    asked = 0

    def do_POST(self) -> None:
        _Bomb.asked += 1
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-encoding", "gzip")
        self.send_header("content-length", str(len(BOMB)))
        self.end_headers()
        try:
            self.wfile.write(BOMB)
        except ConnectionError:  # keval has read enough
            return

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def bomb() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Bomb)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("agent", ["openai", "anthropic"])
def test_a_reply_that_inflates_is_read_no_further_than_allowed(project: Project, bomb: str, agent: str) -> None:
    project.write(
        eval_yaml=f"""
        dataset: {{path: questions.jsonl}}
        agents: {{{agent}: {{model: {agent}/some}}}}
        metrics: [double/length]
        execution: {{retry: {{max_attempts: 2, initial_backoff_seconds: 0}}}}
        """,
        questions_jsonl='{"id": "a", "question": "Why?"}\n',
    )
    variables = {f"{agent.upper()}_BASE_URL": bomb, f"{agent.upper()}_API_KEY": "canary-1234"}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    outcome = project.keval("run", "eval.yaml", env=variables)

    (trial,) = project.lines("trials.jsonl")
    assert (3, "model", "reply_too_large") == (outcome.code, trial["failure"]["stage"], trial["failure"]["kind"])
    assert 1 == len(trial["attempts"])
    assert 200_000 > resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before  # kB, of which SDKs take half


@pytest.mark.slow
@pytest.mark.parametrize(("agent", "vendor"), [("ms", "openai"), ("gadk", "google_gemini")])
def test_behind_the_proxy_a_reply_that_inflates_costs_an_attempt_and_is_not_asked_for_again(
    project: Project, bomb: str, agent: str, vendor: str
) -> None:
    project.write(
        eval_yaml=f"""
        dataset: {{path: questions.jsonl}}
        agents: {{{agent}: {{model: {vendor.partition("_")[0]}/some}}}}
        metrics: [double/length]
        execution: {{retry: {{max_attempts: 2, initial_backoff_seconds: 0}}}}
        """,
        questions_jsonl='{"id": "a", "question": "Why?"}\n',
    )
    key = f"{vendor.rpartition('_')[2].upper()}_API_KEY"
    _Bomb.asked = 0

    outcome = project.keval("run", "eval.yaml", env={f"{vendor.upper()}_BASE_URL": bomb, key: "canary-1234"})

    (trial,) = project.lines("trials.jsonl")
    assert (3, 1, 2) == (outcome.code, len(trial["attempts"]), _Bomb.asked)
    assert "more than 20,000,000 bytes" in trial["failure"]["message"]


@pytest.mark.usefixtures("simulated_here")
@pytest.mark.parametrize("every", [False, True])
def test_a_run_keeps_the_first_model_request_of_one_trial_of_each_arm_or_of_all(project: Project, every: bool) -> None:
    project.write(
        questions_jsonl="\n".join(json.dumps({"id": f"q{number}", "question": f"{number}?"}) for number in range(3)),
        eval_yaml=f"""
            agents: {{openai: {{model: simulated/weather}}}}
            dataset: {{path: questions.jsonl}}
            conditions: {{terse: {{system_prompt: Be terse.}}, kind: {{system_prompt: Be kind.}}}}
            metrics: [basic/latency]
            execution: {{max_concurrent: 1, keep_requests: {str(every).lower()}}}
            """,
    )
    project.run("eval.yaml")
    trials = {trial["id"]: trial for trial in project.lines("trials.jsonl")}
    shown = {name: project.keval("show", "latest", "--trial", name, "--request") for name in trials}

    printed = {name: outcome.data["messages"][-1]["content"] for name, outcome in shown.items() if outcome.code == 0}
    assert {name: f"{trials[name]['sample'][1:]}?" for name in printed} == printed
    assert (6 if every else 2) == len(printed) == len([*project.run_directory().glob("blobs/*")])
    for name, outcome in shown.items():
        if name not in printed:
            kept = next(other for other in printed if trials[other]["condition"] == trials[name]["condition"])
            told = f"first model request of {name!r}; of this agent and condition it keeps that of {kept!r}; execution."
            assert (2, True) == (outcome.code, told in outcome.stderr)
