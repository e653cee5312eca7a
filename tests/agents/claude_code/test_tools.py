"""Tool calls and what came of them; what of a server's loss must not become an answer."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import attrs
import pytest

from keval import McpServer, ServerLostError, ToolsMissingError
from keval_gateway import ChatCall, ChatReply

pytest.importorskip("claude_agent_sdk", reason="keval-claude-code is not installed")

TOOLBOX = Path(__file__).parent / "servers" / "toolbox.py"


def calling(tool: str, server: str = "toolbox", **arguments: Any) -> list[ChatReply]:
    """Call a tool, then answer whatever came back."""
    return [ChatReply(calls=(ChatCall(f"mcp__{server}__{tool}", arguments),)), ChatReply("Whatever.")]


def test_errors_of_tools_are_seen_by_the_model_and_in_the_transcript(play: Any, toolbox: Any) -> None:
    calls = (
        ChatCall("mcp__toolbox__fail", {"text": "no luck"}),
        ChatCall("mcp__toolbox__refuse", {"text": "not so"}),
        ChatCall("mcp__toolbox__add", {"a": "x"}),
        ChatCall("mcp__toolbox__fly", {}),
        ChatCall("Bash", {"command": "ls"}),
    )

    outcome = play([ChatReply(calls=calls), ChatReply("Sorry.")], toolbox.server())

    transcript = outcome.transcript
    assert "Sorry." == transcript.output
    names = ["fail", "refuse", "add", "mcp__toolbox__fly", "Bash"]
    assert names == [call.name for call in transcript.tool_calls]
    told = [message for message in outcome.requests[1].messages if message.role == "tool"]
    assert [(call.error, True) for call in transcript.tool_calls] == [(message.text, message.error) for message in told]
    parts = ["no luck", "not so", "validation errors", "No such tool", "No such tool"]
    assert all(part in (call.error or "") for part, call in zip(parts, transcript.tool_calls, strict=True))
    assert [None, None, None, 0, 0] == [call.runs for call in transcript.tool_calls]


def test_a_picture_is_reported_as_the_text_the_model_is_told(play: Any, toolbox: Any) -> None:
    outcome = play(calling("picture"), toolbox.server())

    (call,) = outcome.transcript.tool_calls
    assert call.error is None
    assert call.result == outcome.requests[1].messages[-1].text


@pytest.mark.parametrize("transport", ["stdio", "sse"])
def test_servers_are_reached_over_every_transport(play: Any, stdio: Any, start_toolbox: Any, transport: str) -> None:
    server = stdio(name="my tools") if transport == "stdio" else start_toolbox("sse").server(name="my tools")

    outcome = play(calling("add", "my_tools", a=1, b=2), server)

    assert ("Whatever.", ['{"result":3}']) == (
        outcome.transcript.output,
        [call.result for call in outcome.transcript.tool_calls],
    )


def test_two_servers_may_have_tools_of_the_same_name(play: Any, toolbox: Any) -> None:
    calls = (ChatCall("mcp__one__add", {"a": 1, "b": 1}), ChatCall("mcp__two__add", {"a": 2, "b": 2}))

    outcome = play([ChatReply(calls=calls), ChatReply("So.")], toolbox.server(name="one"), toolbox.server(name="two"))

    assert ['{"result":2}', '{"result":4}'] == [call.result for call in outcome.transcript.tool_calls]


@pytest.mark.parametrize(
    ("tool", "flags", "said"),
    [
        ("die", (), "ECONNRESET"),
        ("add", ("--broken", "tools/call"), "Error POSTing"),
        ("hang", (), "timed out after 2s"),
    ],
)
def test_a_server_lost_over_http_fails_the_trial(
    play: Any, start_toolbox: Any, tool: str, flags: tuple[str, ...], said: str
) -> None:
    timeout = 2.0 if tool == "hang" else 30.0

    outcome = play(calling(tool, a=1, b=1), start_toolbox("http", *flags).server(timeout=timeout))

    assert isinstance(outcome.error, ServerLostError)
    assert said in str(outcome.error)
    (call,) = outcome.transcript.tool_calls
    assert (tool, True) == (call.name, call.error is not None)


def test_a_stdio_server_that_dies_fails_the_trial_with_its_last_words(play: Any, stdio: Any) -> None:
    outcome = play(calling("die"), stdio())

    assert isinstance(outcome.error, ServerLostError)
    assert "toolbox: out of order" in str(outcome.error)


@pytest.mark.parametrize(
    ("server", "said"),
    [
        (McpServer("toolbox", "stdio", command="no-such-program"), "no-such-program cannot be started"),
        (McpServer("toolbox", "http", "http://127.0.0.1:9/mcp"), "ECONNREFUSED"),
        (McpServer("toolbox", "stdio", command=sys.executable, args=(str(TOOLBOX), "mute"), timeout=2.0), "after 2 s"),
    ],
    ids=["no program", "no port", "no word"],
)
def test_a_server_that_does_not_come_up_fails_the_trial(play: Any, server: McpServer, said: str) -> None:
    outcome = play([ChatReply("I have no tools.")] * 2, attrs.evolve(server, tools=("add",)))

    assert isinstance(outcome.error, ServerLostError)
    assert said in str(outcome.error)
    assert "" == outcome.transcript.output


@pytest.mark.parametrize(
    ("tools", "said"), [(("add", "subtract"), "without subtract"), (("add",), "with mcp__toolbox__die, ")]
)
def test_other_tools_than_the_conditions_fail_the_trial(play: Any, toolbox: Any, tools: Any, said: str) -> None:
    outcome = play([ChatReply("Fine.")], toolbox.server(tools=tools))

    assert isinstance(outcome.error, ToolsMissingError)
    assert said in str(outcome.error)
    assert "" == outcome.transcript.output
