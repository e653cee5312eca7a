"""Reconciling what the framework says it called with what the tap saw run.

Both must agree, or the transcript is not evidence. A framework that replays a call, drops its tools or answers over a
dead server is found here, whatever framework it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from keval.contexts import Context
from keval.errors import ServerLostError, ToolsMissingError, TrialError
from keval.records import ToolCall, Transcript

__all__ = ["check", "merge"]


def check(transcript: Transcript, context: Context) -> None:
    """Raise when a completed trial is no evidence about its condition.

    Raises:
        ServerLostError: a server was lost while the trial ran.
        ToolsMissingError: the model was not offered exactly the condition's tools.
        TrialError: kind `calls_disagree`; the framework and the tap tell different stories.
    """
    for server in context.servers:
        if server.log is not None and server.log.lost is not None:
            raise ServerLostError(server.log.lost)
    if transcript.tools is not None and set(transcript.tools) != set(context.tools):
        raise ToolsMissingError(set(context.tools) - set(transcript.tools), set(transcript.tools) - set(context.tools))
    tapped = {tool for server in context.servers if server.log is not None for tool in server.tools}
    unseen = [call for call in transcript.tool_calls if call.name in tapped and call.error is None and not call.runs]
    unreported = _unreported(transcript.tool_calls, _observed(context))
    if unseen or unreported:
        parts = [f"the framework reports {_names(unseen)}, which no server ran"] if unseen else []
        parts += [f"the servers ran {_names(unreported)}, which the framework does not report"] if unreported else []
        raise TrialError("; ".join(parts), stage="mcp", kind="calls_disagree")


def merge(transcript: Transcript, context: Context) -> Transcript:
    """Return the transcript with result, error, duration and number of runs of each call as the tap saw them."""
    if not context.servers:
        return transcript
    observed = _observed(context)
    # Only where a tap stands in every way that the call could have gone is it known that it went none.
    direct = {tool for server in context.servers if server.log is None for tool in server.tools}
    merged: dict[int, ToolCall] = {}
    # Calls that succeeded claim their runs first: of two alike, the failed one is the one that never ran.
    order = sorted(range(len(transcript.tool_calls)), key=lambda index: transcript.tool_calls[index].error is not None)
    for index in order:
        call = transcript.tool_calls[index]
        position = next((at for at, seen in enumerate(observed) if _same(call, seen)), None)
        if position is not None:
            seen = observed.pop(position)
            merged[index] = attrs.evolve(
                call, result=seen.result, error=seen.error, duration=seen.duration, server=seen.server, runs=1
            )
        else:
            merged[index] = attrs.evolve(call, runs=0) if call.name not in direct else call
    for seen in observed:
        replayed = next((index for index in sorted(merged) if _same(merged[index], seen)), None)
        if replayed is not None:
            merged[replayed] = attrs.evolve(merged[replayed], runs=(merged[replayed].runs or 0) + 1)
    return attrs.evolve(transcript, tool_calls=tuple(merged[index] for index in sorted(merged)))


def _observed(context: Context) -> list[ToolCall]:
    return [call for server in context.servers if server.log is not None for call in server.log.calls]


def _unreported(reported: Sequence[ToolCall], observed: Iterable[ToolCall]) -> list[ToolCall]:
    return [seen for seen in observed if not any(_same(call, seen) for call in reported)]


def _same(call: ToolCall, seen: ToolCall) -> bool:
    return call.name == seen.name and _given(call.arguments) == _given(seen.arguments)


def _given(arguments: Mapping[str, Any]) -> dict[str, Any]:
    # Frameworks differ in whether they send an argument that the model left null.
    return {name: value for name, value in arguments.items() if value is not None}


def _names(calls: Iterable[ToolCall]) -> str:
    return ", ".join(dict.fromkeys(call.name for call in calls))
