"""The adapter behind the real tap: both must tell the same story, and a lost server must fail the trial."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest
from anyio import ClosedResourceError
from mcp import Client

from keval import Sample, Transcript
from keval.execute.trial.reconciliation import check, merge
from keval.plugin import Context
from keval_gateway import ChatCall, ChatReply
from keval_mcp import Stdio
from keval_ms.tools import Connection
from tests.contexts import started
from tests.stdio_server import ENVIRONMENT

SAMPLE = Sample("s1", "How are you?")


@pytest.fixture
def tapped(runner: Any, staged: Any, journal: Path) -> Any:
    """Run a trial behind the tap of a toolbox over stdio, and return its context and what came of it."""

    async def scenario(script: Sequence[ChatReply], api: str) -> tuple[Context, Transcript | Exception]:
        args = ("-m", "tests.agents.ms.servers.shelf", "stdio", "--journal", str(journal))
        server = Stdio(command=sys.executable, args=args, env=ENVIRONMENT)
        async with (
            staged(script, api=api) as scene,
            started(server, "toolbox") as source,
            source.open(SAMPLE, "t1") as part,
        ):
            context = attrs.evolve(part, trial="t1")
            try:
                return context, await scene.agent.run(SAMPLE, context)
            except Exception as error:  # noqa: BLE001 - the test looks at it
                return context, error

    return lambda script, api="chat": runner.run(scenario(script, api))


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_the_tap_and_the_framework_agree_on_the_calls(tapped: Any, api: str) -> None:
    calls = (
        ChatCall("add", {"a": 2, "b": 3}),
        ChatCall("where-am-i", {}),
        ChatCall("fail", {"text": "no"}),
        ChatCall("echo", {"text": "hm", "options": "loud"}),
    )

    context, transcript = tapped([ChatReply(calls=calls), ChatReply("Done.")], api)

    (server,) = context.servers
    seen = sorted((call.name, dict(call.arguments), call.error is None) for call in server.log.calls)
    reported = sorted((call.name, dict(call.arguments), call.error is None) for call in transcript.tool_calls)
    assert reported == seen
    assert [call.executions for call in server.log.calls] == [1, 1, 1, 1]
    assert set(transcript.tools) == set(server.tools)


def test_a_call_that_the_framework_sends_again_is_one_call_that_ran_twice(
    tapped: Any, journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The adapter forbids it, so this is what would be reported of one that does not."""
    answered: list[str] = []
    call_tool = Client.call_tool

    async def losing_the_first_answer(self: Client, name: str, **rest: Any) -> Any:
        answered.append(name)
        answer = await call_tool(self, name, **rest)
        if len(answered) == 1:
            raise ClosedResourceError
        return answer

    monkeypatch.setattr(Client, "call_tool", losing_the_first_answer)
    monkeypatch.setattr(Connection, "begin", lambda self: None)

    context, transcript = tapped([ChatReply(calls=(ChatCall("echo", {"text": "hm"}),)), ChatReply("Done.")])

    merged = merge(transcript, context)
    check(merged, context)
    assert [("echo", None, 2)] == [(call.name, call.error, call.executions) for call in merged.tool_calls]
    assert 2 == journal.read_text("utf-8").count("echo hm")
