"""How a failing model or program shows: as an error with its kind, never as an answer."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from keval import Sample, Usage
from keval.plugin import Context, Endpoint, Model, ModelError, PreflightError, TranscriptBuilder, TrialError
from keval_gateway import ChatCall, ChatReply, ChatRequest, ModelFault
from keval_loopback.serving import serve
from keval_programs import TrialFolder

pytest.importorskip("claude_agent_sdk", reason="keval-claude-code is not installed")

SAMPLE = Sample("s1", "How are you?")
ADD = ChatCall("mcp__toolbox__add", {"a": 1, "b": 1})


@attrs.define
class Stream:
    """A model that begins to say "It is" and ends it as no gateway would; it counts what it is asked."""

    ending: str
    asked: int = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        self.asked += 1
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        for event in self._events():
            frame = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
            await send({"type": "http.response.body", "body": frame, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    def _events(self) -> Iterator[dict[str, Any]]:
        usage = {"input_tokens": 5, "output_tokens": 1}
        message = {"id": f"msg_{self.asked}", "type": "message", "role": "assistant", "model": "odd", "content": []}
        yield {"type": "message_start", "message": {**message, "usage": usage}}
        yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
        yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "It is"}}
        if self.ending == "error":
            yield {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
        elif self.ending != "none":
            yield {"type": "content_block_stop", "index": 0}
            delta = {"stop_reason": self.ending, "stop_sequence": None}
            yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 5}}
            yield {"type": "message_stop"}


def behind(runner: Any, app: ASGIApp) -> TrialError:
    """Run a trial against a server that is no gateway, and return the error."""
    from keval_claude_code import ClaudeCode

    async def scenario() -> TrialError:
        async with serve(app) as base:
            agent = ClaudeCode(model=Model("simulated", "odd", Endpoint("odd", {"anthropic": base}, "secret")))
            with pytest.raises(TrialError) as caught:
                await agent.run(SAMPLE, Context())
            return caught.value

    error: TrialError = runner.run(scenario())
    return error


@pytest.mark.parametrize(
    ("status", "kind", "retryable", "requests"),
    [
        (429, "rate_limit", True, 1),
        (500, "http_500", True, 1),
        (401, "http_401", False, 1),
        # Claude Code asks twice more, each time with less of what it adds to a request.
        (400, "http_400", False, 3),
    ],
)
def test_an_http_error_is_a_model_error(play: Any, status: int, kind: str, retryable: bool, requests: int) -> None:
    def refuse(request: ChatRequest) -> ChatReply:
        raise ModelFault(status, "not today", retry_after=7)

    outcome = play(refuse)

    assert isinstance(outcome.error, ModelError)
    error = outcome.error
    assert (status, kind, retryable, None) == (error.status, error.kind, error.retryable, error.retry_after)
    assert "not today" in str(error)
    assert ("", requests) == (outcome.transcript.output, len(outcome.requests))


def test_a_model_that_cannot_be_reached_is_a_model_error(runner: Any) -> None:
    from keval_claude_code import ClaudeCode

    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    agent = ClaudeCode(model=Model("simulated", "odd", Endpoint("odd", {"anthropic": url}, "secret")))

    with pytest.raises(ModelError) as caught:
        runner.run(agent.run(SAMPLE, Context()))

    assert ("connection", True) == (caught.value.kind, caught.value.retryable)


@pytest.mark.parametrize(
    ("ending", "kind", "retryable", "asked"),
    [
        ("none", "connection", True, 1),
        ("error", "http_529", True, 1),
        # Claude Code lets the model go on three times, and puts a refusal to it once more.
        ("max_tokens", "cut_off", False, 4),
        ("refusal", "refused", False, 2),
    ],
)
def test_a_message_that_does_not_come_to_its_end_is_no_answer(
    runner: Any, ending: str, kind: str, retryable: bool, asked: int
) -> None:
    model = Stream(ending)

    error = behind(runner, model)

    assert (kind, retryable, "model", asked) == (error.kind, error.retryable, error.stage, model.asked)


def test_only_a_last_text_that_a_limit_ended_is_truncated(play: Any) -> None:
    gone_on = play([ChatReply("It is", cut="length"), ChatReply("It is sunny.")])
    cut = play([ChatReply("It is", cut="length")] * 4)

    assert (None, "It is sunny.", False) == (gone_on.error, gone_on.transcript.output, gone_on.transcript.truncated)
    assert isinstance(cut.error, TrialError)
    assert ("cut_off", True) == (cut.error.kind, cut.transcript.truncated)


def test_a_reply_that_is_no_message_is_no_answer(runner: Any) -> None:
    error = behind(runner, PlainTextResponse("It is sunny."))

    assert ("model", False) == (error.stage, error.retryable)


def test_claude_code_asks_again_for_an_answer_that_is_empty(play: Any) -> None:
    outcome = play([ChatReply(""), ChatReply("Fine.")])

    assert ("Fine.", 2) == (outcome.transcript.output, outcome.transcript.model_calls)


@pytest.mark.parametrize("parallel", [1, 3])
def test_a_trial_that_wants_too_many_model_calls_fails(play: Any, toolbox: Any, parallel: int) -> None:
    def again(request: ChatRequest) -> ChatReply:
        return ChatReply(calls=(ADD,) * parallel, usage=Usage(10, 5, 0))

    outcome = play(again, toolbox.server(), max_turns=3)

    assert isinstance(outcome.error, TrialError)
    assert ("max_turns", False) == (outcome.error.kind, outcome.error.retryable)
    assert (3, 3, 3 * parallel) == (
        len(outcome.requests),
        outcome.transcript.model_calls,
        len(outcome.transcript.tool_calls),
    )
    assert Usage(30, 15, 0) == outcome.transcript.usage


def test_what_a_message_took_that_broke_off_after_a_call_is_unknown(tmp_path: Path) -> None:
    from claude_agent_sdk import AssistantMessage, StreamEvent, ToolUseBlock

    from keval_claude_code.servers import Servers
    from keval_claude_code.watch import Watch

    builder = TranscriptBuilder()
    watch = Watch(builder, Servers((), TrialFolder(tmp_path, tmp_path), frozenset({"Bash"})))
    begun = {"type": "message_start", "message": {"usage": {"input_tokens": 10, "output_tokens": 1}}}

    with suppress(TrialError), builder.turn("How?"):
        watch.see(StreamEvent(uuid="u", session_id="s", event=begun))
        watch.see(AssistantMessage(content=[ToolUseBlock(id="1", name="Bash", input={})], model="m"))
        watch.end_turn()

    transcript = builder.transcript()
    assert (Usage(10, None, 0), 1) == (transcript.usage, transcript.model_calls)


def test_every_turn_has_its_own_model_calls(play: Any, toolbox: Any) -> None:
    script = [ChatReply(calls=(ADD,)), ChatReply("Two."), ChatReply(calls=(ADD,)), ChatReply("Two again.")]

    outcome = play(script, toolbox.server(), sample=attrs.evolve(SAMPLE, turns=("And now?",)), max_turns=2)

    assert ("Two again.", 4) == (outcome.transcript.output, len(outcome.requests))


def test_a_process_that_dies_fails_the_trial(play: Any, stdio: Any, journal: Path) -> None:
    def murder(request: ChatRequest) -> ChatReply:
        server = int(journal.read_text("utf-8").split()[1])
        os.kill(int(Path(f"/proc/{server}/stat").read_text("utf-8").split()[3]), signal.SIGKILL)
        return ChatReply("Fine.")

    outcome = play(murder, stdio())

    assert isinstance(outcome.error, TrialError)
    assert ("process", True) == (outcome.error.kind, outcome.error.retryable)
    killed = (
        128 + signal.SIGKILL if sys.platform == "linux" else -signal.SIGKILL
    )  # a supervisor tells it as a shell does
    assert f"ended with exit code {killed}" in str(outcome.error)
    assert "" == outcome.transcript.output


def test_without_a_program_nothing_begins(runner: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import claude_agent_sdk

    from keval_claude_code import ClaudeCode

    monkeypatch.setattr(claude_agent_sdk, "__file__", str(tmp_path / "__init__.py"))
    monkeypatch.setenv("PATH", str(tmp_path))
    agent = ClaudeCode(model=Model("simulated", "odd", Endpoint("odd", {"anthropic": "http://127.0.0.1:9"}, "secret")))

    with pytest.raises(PreflightError, match="neither in the package claude-agent-sdk nor on PATH"):
        runner.run(agent.prepare())


def test_a_model_of_another_protocol_is_refused_at_once() -> None:
    from keval_claude_code import ClaudeCode

    endpoint = Endpoint("gpt", {"openai-chat": "http://127.0.0.1:9"}, "secret")

    with pytest.raises(PreflightError, match="speaks openai-chat, and anthropic is needed"):
        ClaudeCode(model=Model("openai", "gpt", endpoint))
