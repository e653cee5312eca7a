"""The adapter behind the real tap: both must tell the same story, and a lost server must fail the trial."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

from keval import Sample, Transcript
from keval.execute.trial.reconciliation import check, merge
from keval.plugin import Context, ServerLostError
from keval_gateway import ChatCall, ChatReply
from keval_mcp import Stdio
from tests.contexts import started

pytest.importorskip("claude_agent_sdk", reason="keval-claude-code is not installed")

TOOLBOX = Path(__file__).parent / "servers" / "toolbox.py"
SAMPLE = Sample("s1", "How are you?")


@pytest.fixture
def tapped(runner: Any, staged: Any, journal: Path) -> Any:
    """Run a trial behind the tap of a toolbox over stdio, and return its context and what came of it."""

    async def scenario(script: Sequence[ChatReply]) -> tuple[Context, Transcript | Exception]:
        server = Stdio(command=sys.executable, args=(str(TOOLBOX), "stdio", "--journal", str(journal)))
        async with staged(script) as scene, started(server, "toolbox") as source, source.open(SAMPLE, "t1") as part:
            context = attrs.evolve(part, trial="t1")
            try:
                return context, await scene.agent.run(SAMPLE, context)
            except Exception as error:  # noqa: BLE001 - the test looks at it
                return context, error

    return lambda script: runner.run(scenario(script))


def test_the_tap_and_claude_code_agree_on_the_calls(tapped: Any) -> None:
    calls = (
        ChatCall("mcp__toolbox__add", {"a": 2, "b": 3}),
        ChatCall("mcp__toolbox__where_am_i", {}),
        ChatCall("mcp__toolbox__fail", {"text": "no"}),
        ChatCall("mcp__toolbox__fly", {}),
    )

    context, transcript = tapped([ChatReply(calls=calls), ChatReply("Done.")])

    (server,) = context.servers
    seen = sorted((call.name, dict(call.arguments), call.error is None) for call in server.log.calls)
    ran = [call for call in transcript.tool_calls if call.executions != 0]
    assert seen == sorted((call.name, dict(call.arguments), call.error is None) for call in ran)
    merged = merge(transcript, context)
    check(merged, context)
    assert [1, 1, 1, 0] == [call.executions for call in merged.tool_calls]


def test_a_server_that_dies_behind_the_tap_fails_the_trial(tapped: Any) -> None:
    context, error = tapped([ChatReply(calls=(ChatCall("mcp__toolbox__die", {}),)), ChatReply("Whatever.")])

    assert isinstance(error, ServerLostError)
    assert "toolbox: out of order" in str(error)
    assert "" == context.builder.transcript().output
