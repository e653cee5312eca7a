"""Whether a trial is evidence: its calls compared with those that the tap recorded, and the tool use that it owes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import attrs
import orjson

from keval.config.evaluation import Condition
from keval.errors import ServerLostError, ToolsMissingError, TrialError
from keval.execute.attempts import AttemptOutcome, failure_of
from keval.records.servers import McpServer
from keval.records.transcript import Blob, ToolCall, Transcript, given_arguments
from keval.records.trial import WRITTEN_CALL, WRITTEN_CALL_REMEDY
from keval.seams.contexts import Context
from keval.seams.model_text import written_calls


def check(transcript: Transcript, context: Context) -> None:
    """Raise if a completed trial is not evidence about its condition.

    Raises:
        ServerLostError: a server was lost while the trial ran.
        ToolsMissingError: the model was not offered exactly the condition's tools.
        TrialError: of kind `tools_changed`, if a server changed its tools; or of kind `calls_disagree`, if the
            framework and the tap report different calls.
    """
    for server in context.servers:
        if server.log is not None and server.log.lost is not None:
            raise ServerLostError(server.log.lost, kind=server.log.kind)
    for server in context.servers:
        if server.log is not None and server.log.contaminated is not None:
            raise TrialError(server.log.contaminated, stage="mcp", kind="tools_changed")
    if transcript.tools is not None and set(transcript.tools) not in _offers(context):
        raise ToolsMissingError(set(context.tools) - set(transcript.tools), set(transcript.tools) - set(context.tools))
    tapped = {tool for server in context.servers if server.log is not None for tool in _ever_offered(server)}
    unseen = [
        call
        for call in transcript.tool_calls
        if call.name in tapped and call.error is None and not call.executions and not call.own
    ]
    # Where the tap tells of the calls, one that the agent gave up at the end may have been recorded since.
    observed = _observed(context) if transcript.tool_calls_by == "agent" else []
    unreported = _unreported(transcript.tool_calls, observed)
    if unseen or unreported:
        parts = [f"the framework reports {_names(unseen)}, which no server ran"] if unseen else []
        parts += [f"the servers ran {_names(unreported)}, which the framework does not report"] if unreported else []
        raise TrialError("; ".join(parts), stage="mcp", kind="calls_disagree")


def check_text(transcript: Transcript, tools: Mapping[str, Mapping[str, Any] | None]) -> None:
    """Raise TrialError if the answer, as a whole, is a call of a tool, written as a text.

    `tools` are those that were offered, each with the schema of its arguments, if that is known.
    """
    if calls := written_calls(transcript.output, tools):
        raise TrialError(
            f"the answer is a call of {', '.join(dict.fromkeys(calls))} that was written as a text, so no server ran"
            f" it; {WRITTEN_CALL_REMEDY}",
            stage="model",
            kind=WRITTEN_CALL,
        )


def merge(transcript: Transcript, context: Context) -> Transcript:
    """Return the transcript with the facts of contexts, each call's result, and all else that passed, as taps saw it.

    What was dropped of a result is what the adapter reports, as the tap cannot see it.
    """
    if context.facts:
        transcript = attrs.evolve(transcript, facts={**(transcript.facts or {}), **context.facts})
    if not context.servers:
        return transcript
    calls, observed = transcript.tool_calls, _observed(context)
    claims: dict[int, ToolCall] = {}
    # Calls may be identical. Each is matched first with an execution that ended the same way, so that a call that
    # succeeded is not matched with one that failed. A call that the framework answered itself has no execution.
    for claimed in (_same_outcome, _same_success, _same):
        for index, call in enumerate(calls):
            if index in claims or call.executions == 0 or call.own:
                continue
            run = next((seen for seen in observed if claimed(call, seen)), None)
            if run is not None:
                claims[index] = run
                observed = [seen for seen in observed if seen is not run]
    # A call without an execution is known to have reached no server if every server with its tool is behind the tap.
    direct = {tool for server in context.servers if server.log is None for tool in server.tools}
    merged: list[ToolCall] = []
    for index, call in enumerate(calls):
        if index in claims:
            run = claims[index]
            # Further executions of identical calls count for the first such call: the framework sent it again.
            again = [seen for seen in observed if _same(call, seen)]
            observed = [seen for seen in observed if not _same(call, seen)]
            executions = sum(1 if seen.executions is None else seen.executions for seen in (run, *again))
            merged.append(
                attrs.evolve(
                    call,
                    result=run.result,
                    error=run.error,
                    duration=run.duration,
                    server=run.server,
                    error_kind=run.error_kind,
                    changed=run.changed,
                    tool=run.tool,
                    executions=executions,
                    content=run.content,
                    listing=run.listing,
                )
            )
        else:
            merged.append(call if call.name in direct or call.own else attrs.evolve(call, executions=0))
    passed = [exchange for server in context.servers if server.log is not None for exchange in server.log.exchanges]
    exchanges = sorted(passed, key=lambda exchange: exchange.at or 0.0)
    return attrs.evolve(transcript, tool_calls=tuple(merged), exchanges=tuple(exchanges))


def _offers(context: Context) -> list[set[str]]:
    """Return the sets of tools that the model may have been offered last: one, unless a trial follows changes."""
    lists = [[server.tools, *(server.log.followed if server.log else ())] for server in context.servers]
    return [{tool for names in chosen for tool in names} for chosen in product(*lists)]


def _ever_offered(server: McpServer) -> set[str]:
    return {*server.tools, *(tool for names in (server.log.followed if server.log else ()) for tool in names)}


def _observed(context: Context) -> list[ToolCall]:
    return [call for server in context.servers if server.log is not None for call in server.log.calls]


def _unreported(reported: Sequence[ToolCall], observed: Iterable[ToolCall]) -> list[ToolCall]:
    return [seen for seen in observed if not any(_same(call, seen) for call in reported if not call.own)]


def _same(call: ToolCall, seen: ToolCall) -> bool:
    return call.name == seen.name and given_arguments(call.arguments) == given_arguments(seen.arguments)


def _same_success(call: ToolCall, seen: ToolCall) -> bool:
    return _same(call, seen) and (call.error is None) == (seen.error is None)


def _same_outcome(call: ToolCall, seen: ToolCall) -> bool:
    return _same(call, seen) and (call.result, call.error) == (seen.result, seen.error)


def _names(calls: Iterable[ToolCall]) -> str:
    return ", ".join(dict.fromkeys(call.name for call in calls))


_PER_CHARACTER = 4
"""Bytes that a character takes at most."""


def shorten(transcript: Transcript, limit: int, keep: Callable[[Blob], object] | None) -> Transcript:
    """Return the transcript with its texts of more than `limit` bytes cut, each with its length and SHA-256.

    These are what tools returned, the system prompt, and what else passed between agent and servers, of which a mapping
    stands for the text: `bytes` and `sha256`. `keep` is given the whole of each, if it is to be kept.
    """

    def cut(text: str | None) -> str | None:
        if text is None or len(text) * _PER_CHARACTER <= limit:
            return text
        content = text.encode("utf-8", "surrogatepass")
        if len(content) <= limit:
            return text
        blob = Blob.of(content, "text/plain")
        if keep is not None:
            keep(blob)
        return f"{content[:limit].decode('utf-8', 'ignore')}… ({len(content)} bytes, SHA-256 {blob.sha256})"

    def cut_json(value: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
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
