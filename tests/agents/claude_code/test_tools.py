"""Tool calls and what came of them; what of a server's loss must not become an answer."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import attrs
import pytest

from keval.plugin import McpServer, ServerLostError, ToolsMissingError, TrialError
from keval_gateway import ChatCall, ChatReply, ChatRequest

pytest.importorskip("claude_agent_sdk", reason="keval-claude-code is not installed")

TOOLBOX = Path(__file__).parent / "servers" / "toolbox.py"


def calling(tool: str, server: str = "toolbox", **arguments: Any) -> list[ChatReply]:
    """Call a tool, then answer whatever came back."""
    return [ChatReply(calls=(ChatCall(f"mcp__{server}__{tool}", arguments),)), ChatReply("Whatever.")]


def call_every_add(request: ChatRequest) -> ChatReply:
    """Call every server's `add`, each with the next number, then answer."""
    if request.messages[-1].role == "tool":
        return ChatReply("So.")
    names = sorted(tool.name for tool in request.tools if tool.name.endswith("__add"))
    return ChatReply(calls=tuple(ChatCall(name, {"a": n, "b": 1}) for n, name in enumerate(names)))


def told(outcome: Any) -> list[tuple[str, str | None, str | None]]:
    return [(call.name, call.result, call.error) for call in outcome.transcript.tool_calls]


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
    assert [None, None, None, 0, 0] == [call.executions for call in transcript.tool_calls]


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


def test_the_tools_of_a_server_with_any_name_can_be_called(play: Any, toolbox: Any) -> None:
    names = ("c++", "c++ docs", "docs + graph", "docs+", "my__srv", "_more_", "文档", "toString", "__proto__", "-")

    outcome = play(call_every_add, *(toolbox.server(name=name) for name in names))

    assert [("add", f'{{"result":{n}}}', None) for n in range(1, 1 + len(names))] == told(outcome)


def test_servers_whose_names_claude_code_reserves_are_offered_under_others(play: Any, toolbox: Any) -> None:
    names = (
        *("ccr-email", "claude-code-remote", "claude-device", "claude-in-chrome", "claude_ai", "Claude Browser"),
        *("Claude in Chrome", "Claude Preview", "computer-use", "hearthbot", "ide", "remote-browser"),
        *("remote-devices", "webagent", "workspace"),
    )

    outcome = play(call_every_add, *(toolbox.server(name=name) for name in names))

    assert [("add", f'{{"result":{n}}}', None) for n in range(1, 1 + len(names))] == told(outcome)


def test_servers_whose_names_reduce_to_the_same_are_told_apart(play: Any, toolbox: Any, stdio: Any) -> None:
    servers = (toolbox.server(name="a b"), stdio(name="a.b"), toolbox.server(name="A+b"), stdio(name="a_b_2"))

    outcome = play(call_every_add, *servers)

    assert None is outcome.error
    offered = {tool.name for tool in outcome.requests[0].tools if tool.name.endswith("__add")}
    assert {"mcp__a_b__add", "mcp__a_b_2__add", "mcp__A_b_3__add", "mcp__a_b_2_2__add"} == offered
    assert [("add", f'{{"result":{n}}}', None) for n in range(1, 5)] == told(outcome)


def test_a_call_that_claude_code_denies_fails_the_trial(play: Any, toolbox: Any, manage: Any) -> None:
    manage({"permissions": {"ask": ["mcp__toolbox__add"]}})

    outcome = play(calling("add", a=1, b=1), toolbox.server())

    assert isinstance(outcome.error, TrialError)
    assert ("tool_denied", False) == (outcome.error.kind, outcome.error.retryable)
    assert "mcp__toolbox__add" in str(outcome.error)
    assert [("add", None, 0)] == [(call.name, call.result, call.executions) for call in outcome.transcript.tool_calls]


def test_a_server_that_claude_code_does_not_load_fails_the_trial(play: Any, toolbox: Any, manage: Any) -> None:
    manage({"deniedMcpServers": [{"serverName": "my_tools"}]})

    outcome = play([ChatReply("I have no tools.")], toolbox.server(name="my tools"))

    assert isinstance(outcome.error, TrialError)
    assert ("server_refused", False) == (outcome.error.kind, outcome.error.retryable)
    assert "does not load MCP server 'my tools'" in str(outcome.error)
    assert "" == outcome.transcript.output


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
        (
            McpServer("toolbox", "stdio", command=sys.executable, args=(str(TOOLBOX), "mute"), timeout=2.0),
            "after 2",
        ),
    ],
    ids=["no program", "no port", "no word"],
)
def test_a_server_that_does_not_come_up_fails_the_trial(play: Any, server: McpServer, said: str) -> None:
    outcome = play([ChatReply("I have no tools.")] * 2, attrs.evolve(server, tools=("add",)))

    assert isinstance(outcome.error, ServerLostError)
    assert said in str(outcome.error)  # of 2 seconds, Claude Code may tell by itself: "after 2000ms"
    assert "" == outcome.transcript.output


@pytest.mark.parametrize(
    ("tools", "said"), [(("add", "subtract"), "without subtract"), (("add",), "with mcp__toolbox__die, ")]
)
def test_other_tools_than_the_conditions_fail_the_trial(play: Any, toolbox: Any, tools: Any, said: str) -> None:
    outcome = play([ChatReply("Fine.")], toolbox.server(tools=tools))

    assert isinstance(outcome.error, ToolsMissingError)
    assert said in str(outcome.error)
    assert "" == outcome.transcript.output
