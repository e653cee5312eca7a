"""What an agent reports of its calls, compared with what the taps of its servers recorded."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

import attrs

from keval import ToolCall, Transcript
from keval.errors import ServerLostError, ToolsMissingError, TrialError
from keval.records.servers import McpServer
from keval.records.transcript import given_arguments
from keval.seams.contexts import Context
from keval_mcp.tap.agent_session import Channel

_OF_TAPS = ("result", "error", "duration", "server", "error_kind", "changed", "tool", "content", "listing")
"""What a tap tells of a call in place of the framework."""


def check(transcript: Transcript, context: Context) -> None:
    """Raise if a completed trial is not evidence about its condition.

    Raises:
        ServerLostError: a server was lost while the trial ran.
        ToolsMissingError: the model was not offered exactly the condition's tools.
        TrialError: of kind `tools_changed`, if a server changed its tools; or of kind `calls_disagree`, if the
            framework and the tap report different calls.
    """
    # Causes first: a server that was lost, or changed its tools, explains differences that are found below.
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
    reported = [call for call in transcript.tool_calls if not call.own]
    unreported = [seen for seen in observed if not any(_same(call, seen) for call in reported)]
    if unseen or unreported:
        parts = [f"the framework reports {_names(unseen)}, which no server ran"] if unseen else []
        parts += [f"the servers ran {_names(unreported)}, which the framework does not report"] if unreported else []
        raise TrialError("; ".join(parts), stage="mcp", kind="calls_disagree")


def as_observed(transcript: Transcript, context: Context) -> Transcript:
    """Return the transcript with each call's result, and all else that passed, as taps saw it.

    What was dropped of a result is what the adapter reports, as the tap cannot see it.
    """
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
            seen_by_tap = {name: getattr(run, name) for name in _OF_TAPS}
            merged.append(attrs.evolve(call, **seen_by_tap, executions=executions))
        else:
            merged.append(call if call.name in direct or call.own else attrs.evolve(call, executions=0))
    passed = [exchange for server in context.servers if server.log is not None for exchange in server.log.exchanges]
    exchanges = sorted(passed, key=lambda exchange: exchange.at or 0.0)
    passages = [each.channel.passage for each in context.servers if isinstance(each.channel, Channel)]
    protocols = {passage.name: passage.spoken for passage in passages if passage.spoken is not None}
    return attrs.evolve(transcript, tool_calls=tuple(merged), exchanges=tuple(exchanges), protocols=protocols)


def _offers(context: Context) -> list[set[str]]:
    """Return the sets of tools that the model may have been offered last: one, unless a trial follows changes."""
    lists = [[server.tools, *(server.log.followed if server.log else ())] for server in context.servers]
    return [{tool for names in chosen for tool in names} for chosen in product(*lists)]


def _ever_offered(server: McpServer) -> set[str]:
    return {*server.tools, *(tool for names in (server.log.followed if server.log else ()) for tool in names)}


def _observed(context: Context) -> list[ToolCall]:
    return [call for server in context.servers if server.log is not None for call in server.log.calls]


def _same(call: ToolCall, seen: ToolCall) -> bool:
    return call.name == seen.name and given_arguments(call.arguments) == given_arguments(seen.arguments)


def _same_success(call: ToolCall, seen: ToolCall) -> bool:
    return _same(call, seen) and (call.error is None) == (seen.error is None)


def _same_outcome(call: ToolCall, seen: ToolCall) -> bool:
    return _same(call, seen) and (call.result, call.error) == (seen.result, seen.error)


def _names(calls: Iterable[ToolCall]) -> str:
    return ", ".join(dict.fromkeys(call.name for call in calls))
