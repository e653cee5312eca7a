"""Whether a trial is evidence: what it tells of servers and tools, and the tool use that it owes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import orjson

from keval.config.evaluation import Condition
from keval.errors import ToolsMissingError, TrialError
from keval.execute.attempts import AttemptOutcome, failure_of
from keval.execute.bringup.servers import server_proxy
from keval.records.transcript import Blob, Transcript
from keval.records.trial import WRITTEN_CALL, WRITTEN_CALL_REMEDY
from keval.seams.contexts import Context
from keval.seams.model_text import written_calls


def check(transcript: Transcript, context: Context) -> None:
    """Raise if a completed trial is not evidence about its condition; see `ServerProxy.check`."""
    if context.servers:
        server_proxy().check(transcript, context)
    elif transcript.tools:
        raise ToolsMissingError(set(), set(transcript.tools))


def check_text(transcript: Transcript, tools: Mapping[str, Mapping[str, Any] | None]) -> None:
    """Raise TrialError if the answer is a call of a tool, written as a text, and what its model invented to follow it.

    `tools` are those that were offered, each with the schema of its arguments, if that is known.
    """
    # An answer after calls that servers ran may show one.
    called = transcript.tool_calls or transcript.unlisted_calls != 0
    question = None if called else "\n".join(each.text for each in transcript.messages if each.role == "user")
    if calls := written_calls(transcript.output, tools, question):
        raise TrialError(
            f"the answer writes a call of {', '.join(dict.fromkeys(calls))} as a text, so no server ran it;"
            f" {WRITTEN_CALL_REMEDY}",
            stage="model",
            kind=WRITTEN_CALL,
        )


def merge(transcript: Transcript, context: Context) -> Transcript:
    """Return the transcript with the facts of contexts, and with what passed between the agent and its servers."""
    if context.facts:
        transcript = attrs.evolve(transcript, facts={**(transcript.facts or {}), **context.facts})
    return server_proxy().observed(transcript, context) if context.servers else transcript


_PER_CHARACTER = 4
"""Bytes that a character takes at most."""


def shorten(transcript: Transcript, limit: int, keep: Callable[[Blob], object] | None) -> Transcript:
    """Return the transcript with its texts of more than `limit` bytes cut, each with its length and SHA-256.

    These are what tools returned, the system prompt, and what else passed between agent and servers, of which a mapping
    stands for the text: `bytes` and `sha256`. `keep` is given the whole of each, if it is to be kept.
    """

    def cut(text: str | None) -> str | None:
        # Nearly all texts are so short that they need not be encoded.
        if text is None or len(text) * _PER_CHARACTER <= limit:
            return text
        content = text.encode("utf-8", "surrogatepass")
        if len(content) <= limit:
            return text
        blob = Blob.of(content, "text/plain")
        if keep is not None:
            keep(blob)
        # The limit may fall within a character.
        return f"{content[:limit].decode('utf-8', 'ignore')}… ({len(content)} bytes, SHA-256 {blob.sha256})"

    def cut_json(value: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        # By `dict`, as orjson knows no other mappings.
        if value is None or len(content := orjson.dumps(value, default=dict)) <= limit:
            return value
        blob = Blob.of(content, "application/json")
        if keep is not None:
            keep(blob)
        return {"bytes": len(content), "sha256": blob.sha256}

    instructions = cut(transcript.instructions)
    has_results = any(message.role == "tool" for message in transcript.messages)
    if instructions is transcript.instructions and not (transcript.tool_calls or transcript.exchanges or has_results):
        return transcript
    calls = [attrs.evolve(call, result=cut(call.result), error=cut(call.error)) for call in transcript.tool_calls]
    messages = [
        attrs.evolve(message, text=cut(message.text) or "") if message.role == "tool" else message
        for message in transcript.messages
    ]
    exchanges = [
        attrs.evolve(exchange, params=cut_json(exchange.params) or {}, result=cut_json(exchange.result))
        for exchange in transcript.exchanges
    ]
    return attrs.evolve(
        transcript,
        tool_calls=tuple(calls),
        messages=tuple(messages),
        exchanges=tuple(exchanges),
        instructions=instructions,
    )


class ToolUseError(TrialError):
    """An answer did not use tools as its condition requires."""


def check_tool_use(transcript: Transcript, condition: Condition) -> bool | None:
    """Return whether an answer complies; `None` if that is unknown, because only the number of calls is known.

    A call that no server executed, such as one of an unknown tool or of the agent's own, counts neither as tool use nor
    as success.

    Raises ToolUseError when it does not comply: kind `no_tool_use` or `no_tool_success`.
    """
    listed, unlisted = transcript.tool_calls, transcript.unlisted_calls
    ran = [call for call in listed if call.executions != 0 and not call.own]
    if condition.require_mcp_tool_use and not ran and not unlisted:
        if unlisted is None:
            return None
        raise ToolUseError(
            "the agent answered without calling a tool, which its condition requires", kind="no_tool_use"
        )
    if condition.require_mcp_tool_success and not any(call.error is None for call in ran):
        # Whether a call that nobody listed succeeded is unknown.
        if unlisted != 0:
            return None
        if listed:
            raise ToolUseError(
                f"no tool call succeeded, which the condition requires; the last said: {listed[-1].error}",
                kind="no_tool_success",
            )
    return True


def asks_again(outcome: AttemptOutcome[Transcript], on_missing: str) -> bool:
    """Return whether an answer without the tool use that is required is asked for again."""
    return isinstance(outcome.error, ToolUseError) and on_missing == "retry"


def held_to(
    condition: Condition, transcript: Transcript | None, outcome: AttemptOutcome[Transcript]
) -> tuple[bool | None, AttemptOutcome[Transcript]]:
    """Check an answer for the tool use that its condition requires; returns also whether it complied, if required."""
    if transcript is None or outcome.failure is not None or not condition.requires_tool_use:
        return None, outcome
    try:
        return check_tool_use(transcript, condition), outcome
    except ToolUseError as error:
        kept = condition.on_missing_tool_use == "keep"
        return False, outcome if kept else AttemptOutcome(outcome.value, failure_of(error), error)
