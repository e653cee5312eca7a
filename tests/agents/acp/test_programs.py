"""Codex, Gemini CLI, opencode and Claude Code, by the recipes of the documentation, in front of a scripted model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from keval import Sample
from keval.plugin import ModelError
from keval_command import Session
from keval_gateway import ChatReply, ChatRequest, ModelFault
from tests.agents.stage import INSTRUCTIONS, QUESTION, Adapter, Outcome, Script, Stage, calls, plain, says
from tests.agents.test_contract import answer, children
from tests.coding_agents import RECIPES, installed

pytestmark = pytest.mark.slow


@pytest.fixture(params=RECIPES, autouse=True)
def program(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Adapter:
    """Each recipe, but for its model."""
    monkeypatch.setenv("PATH", installed())
    recipe = {**RECIPES[request.param], "command": tuple(RECIPES[request.param]["command"])}
    options = {name: value for name, value in recipe.items() if name not in ("type", "model")}
    if recipe["type"] == "acp":
        return Adapter("keval_acp", "Acp", options, by_proxy=True, tells="texts")
    options["session"] = Session(**options["session"])
    return Adapter("keval_command", "Command", options, by_proxy=True, tells="model")


@pytest.fixture
def play(runner: asyncio.Runner, stage: Stage, program: Adapter) -> Callable[..., Outcome]:
    """Run a trial of the program: `play(reply, ..., sample=...)`."""

    def run(*replies: Script, sample: Sample = QUESTION) -> Outcome:
        return runner.run(asyncio.wait_for(stage.play(program, scripted(*replies), sample), 100))

    return run


def scripted(*replies: Script) -> Script:
    """Give the replies in order, and a title to who asks for one beside the conversation, without its tools."""
    left: Iterator[Script] = iter(replies)

    async def reply(request: ChatRequest) -> ChatReply:
        return await answer(next(left), request) if in_conversation(request) else ChatReply("A sum")

    return reply


def in_conversation(request: ChatRequest) -> bool:
    return "add" in [plain(tool.name) for tool in request.tools]


def test_planted_calls_are_counted_alike_by_tap_and_agent(play: Any, program: Adapter) -> None:
    planted = [("add", {"a": 2, "b": 3}), ("divide", {"a": 1, "b": 0}), ("add", {"a": 2, "b": 3})]

    outcome = play(calls(*planted, text="Let me add."), calls(planted[0]), says("It is 5."))

    transcript = outcome.transcript
    error = "Error executing tool divide: nothing can be divided by zero"
    told = [(call.name, call.own, call.executions, call.result, call.error) for call in transcript.tool_calls]
    added = ("add", False, 1, "5", None)
    assert (None, "It is 5.") == (outcome.error, transcript.output)
    assert [("add", False, 1, "5", None)] * 3 + [("divide", False, 1, None, error)] == sorted(told)
    assert added == told[-1]
    assert ("tap", "proxy") == (transcript.tool_calls_by, transcript.model_calls_by)
    assert ("Let me add." in [message.text for message in transcript.messages]) == (program.tells == "texts")


def test_the_model_gets_the_system_prompt_every_turn_and_the_conditions_tools(play: Any, program: Adapter) -> None:
    sample = Sample("s1", "What is 2 + 3?", turns=("And twice that?",))

    outcome = play(calls(("add", {"a": 2, "b": 3})), says("It is 5."), says("It is 10."), sample=sample)

    asked = [request for request in outcome.requests if in_conversation(request)]
    said = " ".join(message.text for message in asked[-1].messages)
    assert (None, "It is 10.", 3) == (outcome.error, outcome.transcript.output, len(asked))
    assert all(INSTRUCTIONS in request.system for request in asked)
    if program.module == "keval_command":  # as the page says of Codex, and of no other program
        assert (INSTRUCTIONS, ["What is 2 + 3?"]) == (asked[0].system, [message.text for message in asked[0].messages])
    assert {"bash", "exec_command", "run_shell_command"}.isdisjoint(tool.name.lower() for tool in asked[0].tools)
    assert all(text in said for text in ("What is 2 + 3?", "It is 5.", "And twice that?"))


def test_a_model_that_fails_is_why_the_trial_fails(play: Any) -> None:
    def refuse(request: ChatRequest) -> ChatReply:
        raise ModelFault(400, "not today")

    outcome = play(calls(("add", {"a": 2, "b": 3})), *[refuse] * 9)

    assert isinstance(outcome.error, ModelError)
    assert "http_400" == outcome.error.kind


def test_a_trial_that_is_cancelled_leaves_no_process(runner: asyncio.Runner, stage: Stage, program: Adapter) -> None:
    async def scenario() -> set[str]:
        asked, never = asyncio.Event(), asyncio.Event()

        async def silent(request: ChatRequest) -> ChatReply:
            asked.set()
            await never.wait()
            return ChatReply("Too late.")

        before = children()
        async with stage.trial(program, silent, QUESTION) as (_, running):
            await asked.wait()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
        return children() - before

    assert set() == runner.run(asyncio.wait_for(scenario(), 60))
