"""Whether a trial is evidence, where the tap tells of its calls in the agent's place."""

from __future__ import annotations

from typing import Literal

import pytest

from keval import ToolCall, Transcript
from keval.execute.trial.reconciliation import check
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
