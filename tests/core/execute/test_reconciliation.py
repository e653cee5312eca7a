"""Whether a trial is evidence, where the tap tells of its calls in the agent's place."""

from __future__ import annotations

from typing import Literal

import attrs
import pytest

from keval import ToolCall, Transcript
from keval.execute.trial.reconciliation import check, merge
from keval.plugin import Context, McpServer, TrialError
from keval.records.servers import CallLog


@pytest.mark.parametrize("told_by", ["agent", "tap"])
def test_a_call_that_ended_after_the_answer_is_no_disagreement_where_the_tap_tells_of_calls(
    told_by: Literal["agent", "tap"],
) -> None:
    given_up = ToolCall("look", error="the agent gave the call up before the server answered", server="notes")
    context = Context(servers=(McpServer("notes", "http", tools=("look",), log=CallLog([given_up])),))
    failure: str | None = None

    try:
        check(Transcript(tool_calls_by=told_by), context)
    except TrialError as error:
        failure = error.kind

    assert failure == (None if told_by == "tap" else "calls_disagree")


def test_calls_made_at_once_have_each_the_run_that_ended_as_they_did() -> None:
    """They are alike but for how they ended, and a server may run the second one first."""
    told = [ToolCall("look", error="it is dark", server="notes"), ToolCall("look", result="north", server="notes")]
    runs = [attrs.evolve(call, duration=seconds) for call, seconds in zip(reversed(told), (1.0, 2.0), strict=True)]
    context = Context(servers=(McpServer("notes", "http", tools=("look",), log=CallLog(runs)),))

    merged = merge(Transcript(tool_calls=tuple(told)), context)

    assert [("it is dark", 2.0), (None, 1.0)] == [(call.error, call.duration) for call in merged.tool_calls]
