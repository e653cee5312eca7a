"""Codex, Gemini CLI, opencode and Claude Code, by the recipes of the documentation, in front of a scripted model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any

import pytest

from keval import Sample
from keval.plugin import ModelError
from keval_command import Session
from keval_testing import calls_tools, refuses, says
from keval_testing.agent_stage import INSTRUCTIONS, QUESTION, AgentStage, Outcome
from keval_testing.scripted_model import ReceivedRequest, ScriptedReply, offered_name
from tests.agents.stage import Adapter
from tests.coding_agents import RECIPES, installed
from tests.processes import children

pytestmark = pytest.mark.slow


@pytest.fixture(params=RECIPES, autouse=True)
def program(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Adapter:
    """Each recipe, but for its model."""
    monkeypatch.setenv("PATH", installed())
    recipe = {**RECIPES[request.param], "command": tuple(RECIPES[request.param]["command"])}
    options = {name: value for name, value in recipe.items() if name not in ("type", "model")}
    if recipe["type"] == "acp":
        return Adapter("keval_acp", "Acp", options)
    options["session"] = Session(**options["session"])
    return Adapter("keval_command", "Command", options)


@pytest.fixture
def play(runner: asyncio.Runner, stage: AgentStage, program: Adapter) -> Callable[..., Outcome]:
    """Run a trial of the program: `play(reply, ..., sample=...)`."""

    async def trial(replies: Iterator[ScriptedReply], sample: Sample) -> Outcome:
        def reply(request: ReceivedRequest) -> ScriptedReply:
            # A program may ask for a title beside the conversation, without its tools.
            return next(replies) if in_conversation(request) else says("A sum")

        async with stage.agent(program.build, repeat(reply)) as staged:
            return await staged.play(sample)

    def run(*replies: ScriptedReply, sample: Sample = QUESTION) -> Outcome:
        return runner.run(asyncio.wait_for(trial(iter(replies), sample), 100))

    return run


def in_conversation(request: ReceivedRequest) -> bool:
    return offered_name("add", request.tools) in request.tools


def test_planted_calls_are_counted_alike_by_tap_and_agent(play: Any, program: Adapter) -> None:
    planted = [("add", {"a": 2, "b": 3}), ("divide", {"a": 1, "b": 0}), ("add", {"a": 2, "b": 3})]

    outcome = play(calls_tools(*planted, text="Let me add."), calls_tools(planted[0]), says("It is 5."))

    transcript = outcome.transcript
    error = "nothing can be divided by zero"
    told = [(call.name, call.own, call.executions, call.result, call.error) for call in transcript.tool_calls]
    added = ("add", False, 1, "5", None)
    assert (None, "It is 5.") == (outcome.error, transcript.output)
    assert [("add", False, 1, "5", None)] * 3 + [("divide", False, 1, None, error)] == sorted(told)
    assert added == told[-1]
    assert ("tap", "proxy") == (transcript.tool_calls_by, transcript.model_calls_by)
    assert ("Let me add." in [message.text for message in transcript.messages]) == (program.module == "keval_acp")


def test_the_model_gets_the_system_prompt_every_turn_and_the_conditions_tools(play: Any, program: Adapter) -> None:
    sample = Sample("s1", "What is 2 + 3?", turns=("And twice that?",))

    outcome = play(calls_tools(("add", {"a": 2, "b": 3})), says("It is 5."), says("It is 10."), sample=sample)

    asked = [request for request in outcome.requests if in_conversation(request)]
    said = " ".join(message.text for message in asked[-1].messages)
    assert (None, "It is 10.", 3) == (outcome.error, outcome.transcript.output, len(asked))
    assert all(INSTRUCTIONS in request.system for request in asked)
    if program.module == "keval_command":  # as the page says of Codex, and of no other program
        assert (INSTRUCTIONS, ["What is 2 + 3?"]) == (asked[0].system, [message.text for message in asked[0].messages])
    assert {"bash", "exec_command", "run_shell_command"}.isdisjoint(tool.lower() for tool in asked[0].tools)
    assert all(text in said for text in ("What is 2 + 3?", "It is 5.", "And twice that?"))


def test_a_model_that_fails_is_why_the_trial_fails(play: Any) -> None:
    outcome = play(calls_tools(("add", {"a": 2, "b": 3})), *[refuses(400)] * 9)

    assert isinstance(outcome.error, ModelError)
    assert "http_400" == outcome.error.kind


def test_a_trial_that_is_cancelled_leaves_no_process(
    runner: asyncio.Runner, stage: AgentStage, program: Adapter
) -> None:
    async def scenario() -> set[str]:
        asked, never = asyncio.Event(), asyncio.Event()

        async def silent(request: ReceivedRequest) -> ScriptedReply:
            asked.set()
            await never.wait()
            return says("Too late.")

        before = children()
        async with stage.agent(program.build, repeat(silent)) as staged, staged.trial() as running:
            await asked.wait()
            running.task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running.task
        return children() - before

    assert set() == runner.run(asyncio.wait_for(scenario(), 60))
