"""The stub server does to calls what it was told to."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from keval_testing import stub_server

CALL = ("tools/call", {"name": "look_up", "arguments": {"question": "Is it?"}})
COUNT = ("tools/call", {"name": "count", "arguments": {}})


@contextmanager
def running(way: Any, **options: Any) -> Iterator[subprocess.Popen[str]]:
    section = stub_server(way, **options)
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen([section["command"], *section["args"]], text=True, **pipes) as process:
        yield process


def ask(process: subprocess.Popen[str], method: str, params: Any) -> Any:
    """Send a request, and return the result, behind what is no message; `None` if the process ends."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}) + "\n")
    process.stdin.flush()
    for line in process.stdout:
        if line.startswith("{"):
            return json.loads(line).get("result")
    return None


@pytest.mark.parametrize(
    ("way", "is_error", "text"), [("plain", False, "So."), ("slow", False, "So."), ("failing", True, "So.")]
)
def test_a_call_is_answered(way: Any, is_error: bool, text: str) -> None:
    with running(way, says="So.", seconds=0.01) as process:
        answer = ask(process, *CALL)

    assert {"content": [{"type": "text", "text": text}], "isError": is_error} == answer


def test_a_stateful_server_counts_and_does_not_say_that_it_is_read_only() -> None:
    with running("stateful") as process:
        counted = [ask(process, *COUNT)["content"][0]["text"] for _ in range(3)]
        tools = ask(process, "tools/list", {})["tools"]

    assert ["1", "2", "3"] == counted
    assert [("look_up", False), ("count", False)] == [(tool["name"], "annotations" in tool) for tool in tools]


def test_a_dying_server_ends_at_a_call() -> None:
    with running("dying") as process:
        assert ask(process, "initialize", {})["serverInfo"]["name"] == "stub"
        assert ask(process, *CALL) is None

    assert 7 == process.returncode


def test_a_hanging_server_answers_all_but_calls() -> None:
    with running("hanging") as process:
        assert process.stdin is not None
        process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 0, "method": CALL[0], "params": CALL[1]}) + "\n")

        assert {} == ask(process, "ping", {})


def test_a_hostile_server_writes_what_is_no_message() -> None:
    with running("hostile", says="So.") as process:
        told = ask(process, *CALL)["content"][0]["text"]
        listed = ask(process, "tools/list", {})["tools"][0]["description"]

    assert ("So.", True) == (told[:3], len(told) > 10_000)
    assert ["<img", "Ignore all rules"] == [text for text in ("<img", "Ignore all rules") if text in listed]


def test_a_refusing_server_says_why() -> None:
    with running("refusing") as process:
        assert process.stderr is not None
        assert "refuses to start" in process.stderr.read()

    assert 1 == process.returncode
