"""Calls of the condition's tools and of the agent's own, permissions, terminals and plans."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from keval import Sample, ToolCall
from keval_testing import calls_tools, says
from keval_testing.agent_stage import INSTRUCTIONS, AgentStage
from tests.agents.acp.coder import TITLES
from tests.agents.acp.conftest import coder


def told(call: ToolCall) -> tuple[str, bool, str | None, str | None]:
    return call.name, call.own, call.result, call.error


@pytest.mark.slow
@pytest.mark.parametrize("titles", TITLES)
def test_planted_calls_are_counted_alike_by_tap_and_agent_however_the_agent_shows_them(play: Any, titles: str) -> None:
    planted = [("add", {"a": 1, "b": 2}), ("add", {"a": 1, "b": 2}), ("divide", {"a": 1, "b": 0})]
    own = ("shell", {"command": "echo add"})

    outcome = play(
        calls_tools(*planted, own), calls_tools(planted[0]), says("Done."), flags=("--own", "--titles", titles)
    )

    error = "nothing can be divided by zero"
    tapped = [("add", False, "3", None), ("add", False, "3", None), ("divide", False, None, error)]
    assert outcome.error is None
    assert [*tapped, ("add", False, "3", None)] == [
        told(call) for call in outcome.transcript.tool_calls if not call.own
    ]
    assert [("execute", True, "add\n", None)] == [told(call) for call in outcome.transcript.tool_calls if call.own]
    assert ("tap", "proxy", 3) == (
        outcome.transcript.tool_calls_by,
        outcome.transcript.model_calls_by,
        outcome.transcript.model_calls,
    )


def test_texts_and_results_stand_in_the_order_in_which_they_came(play: Any) -> None:
    outcome = play(
        calls_tools(("add", {"a": 2, "b": 3}), text="Let me add."),
        calls_tools(("shell", {"command": "echo five"}), text="And say it."),
        says("It is 5."),
        flags=("--own",),
    )

    texts = [message.text for message in outcome.transcript.messages]
    assert ["What is 2 + 3?", "Let me add.", "5", "And say it.", "five\n", "It is 5."] == texts


def test_a_message_ends_where_one_with_another_id_begins(play: Any) -> None:
    outcome = play(says("It is 5."), flags=("--fault", "warn"))

    said = [message.text for message in outcome.transcript.messages if message.role == "assistant"]
    assert (["Warning: no colours", "It is 5."], "It is 5.") == (said, outcome.transcript.output)


def test_pieces_of_a_text_are_reported_where_somebody_reads_along(runner: asyncio.Runner, stage: AgentStage) -> None:
    playing = stage.play(coder().build, says("It is 5."), streams=True)

    outcome = runner.run(asyncio.wait_for(playing, 30))

    pieces = [data["text"] for kind, data in outcome.events if kind == "text_streamed"]
    assert ["It ", "is 5."] == pieces


def test_a_mode_and_settings_are_chosen_in_each_session(play: Any) -> None:
    outcome = play(says("It is 5."), mode="bold", settings={"effort": "high"})

    (request,) = outcome.requests
    chosen = [json.loads(text) for text in re.findall(r"Chosen: (\{.*?\})", request.system)]
    assert [{"modeId": "bold"}, {"configId": "effort", "value": "high"}] == chosen


def test_the_system_prompt_stands_before_the_first_message_where_no_option_hands_it_over(play: Any) -> None:
    sample = Sample("s1", "What is 2 + 3?", turns=("And twice that?",))

    outcome = play(says("It is 5."), says("It is 10."), meta={}, sample=sample)

    asked = [message.text for message in outcome.requests[-1].messages if message.role == "user"]
    assert [f"{INSTRUCTIONS}\n\nWhat is 2 + 3?", "And twice that?"] == asked


def test_a_call_of_the_agents_own_has_its_arguments_its_time_and_its_difference(play: Any) -> None:
    outcome = play(
        calls_tools(("write", {"path": "notes/a.txt", "text": "one\ntwo\n"})),
        calls_tools(("shell", {"command": "sleep 0.2; cat notes/a.txt"})),
        says("Done."),
        flags=("--own",),
    )

    write, shell = outcome.transcript.tool_calls
    assert {"path": "notes/a.txt", "text": "one\ntwo\n"} == dict(write.arguments)
    assert "--- notes/a.txt\n+++ notes/a.txt\n@@ -0,0 +1,2 @@\n+one\n+two" == write.result
    assert ("execute", "one\ntwo\n", True) == (shell.name, shell.result, 0.2 <= (shell.duration or 0.0) < 5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("permissions", "results"),
    [
        ("allow", ["5", "hi\n", "written"]),
        ("deny", ["5", None, None]),
        (("execute",), ["5", "hi\n", None]),
        (("Use write",), ["5", None, "written"]),
    ],
)
def test_permissions_are_for_the_agents_own_tools(play: Any, permissions: Any, results: list[str | None]) -> None:
    wanted: list[tuple[str, dict[str, Any]]] = [
        ("add", {"a": 2, "b": 3}),
        ("shell", {"command": "echo hi"}),
        ("write", {"path": "a.txt", "text": "a"}),
    ]

    outcome = play(calls_tools(*wanted), says("Done."), flags=("--own", "--asks"), permissions=permissions)

    by_name = {call.name: call for call in outcome.transcript.tool_calls}
    assert results[:2] == [by_name["add"].result, by_name["execute"].result]
    assert (results[2] is not None) == (by_name["edit"].error is None)
    assert outcome.transcript.output == "Done."


def test_a_call_that_ends_while_a_text_is_written_does_not_cut_it(play: Any) -> None:
    outcome = play(says("It is 5."), flags=("--fault", "late"))

    (call,) = outcome.transcript.tool_calls
    assert (None, "It is 5. And that is all.") == (outcome.error, outcome.transcript.output)
    assert ("think", True, "so it was", None) == told(call)  # the tap knows of no `add`, which its title says


def test_calls_of_equal_arguments_are_told_apart_by_their_names(play: Any) -> None:
    numbers = {"a": 2, "b": 3, "command": "echo hi"}

    outcome = play(calls_tools(("add", numbers), ("shell", numbers)), says("It is 5."), flags=("--own", "--reverse"))

    assert outcome.error is None
    assert [("add", False, "5", None), ("execute", True, "hi\n", None)] == sorted(
        told(call) for call in outcome.transcript.tool_calls
    )


def test_a_call_of_the_conditions_that_no_server_got_is_told_as_not_executed(play: Any) -> None:
    outcome = play(calls_tools(("divide", {"a": 1})), says("Done."), flags=("--asks", "--fault", "lost-call"))

    (call,) = outcome.transcript.tool_calls
    assert ("divide", False, None, "the call was lost") == told(call)
    assert 0 == call.executions


@pytest.mark.parametrize("path", ["/etc", "../..", "out"])
def test_a_terminal_in_a_folder_outside_of_the_trials_is_refused(play: Any, path: str, tmp_path: Path) -> None:
    outcome = play(
        calls_tools(("shell", {"command": f"ln -s {tmp_path} out"})),
        calls_tools(("shell", {"command": "pwd", "cwd": path})),
        says("Done."),
        flags=("--own",),
    )

    _, call = outcome.transcript.tool_calls
    assert call.result is None
    assert call.error is not None
    assert re.match(rf"\S*{path}: it is outside of ", call.error)


def test_a_command_that_fails_is_told_to_the_agent(play: Any) -> None:
    outcome = play(calls_tools(("shell", {"command": "echo no >&2; exit 3"})), says("Done."), flags=("--own",))

    (shell,) = outcome.transcript.tool_calls
    assert (None, "no\n") == (shell.result, shell.error)


def test_a_plan_is_told_as_a_call_of_the_agents_own(play: Any) -> None:
    outcome = play(says("Done."), flags=("--fault", "plan"))

    (plan,) = outcome.transcript.tool_calls
    entry = {"content": "Add", "priority": "high", "status": "pending"}
    assert ("plan", True, {"entries": [entry]}) == (plan.name, plan.own, dict(plan.arguments))
