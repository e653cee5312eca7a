"""Sessions: single conversations outside of a plan, with the real servers of a condition."""

from __future__ import annotations

import asyncio
import os
from contextlib import aclosing
from pathlib import Path

import pytest

from keval import Message, Session, Transcript
from keval.plugin import ConfigError, LiveEvent, PluginError, TrialError
from tests.conftest import ON_PATH, Project

pytestmark = pytest.mark.usefixtures("simulated_here")

WEATHER = """
agents:
  openai: {model: simulated/weather}
  gadk: {model: simulated/weather}
  ms: {model: simulated/weather}
contexts: {weather: {}}
conditions:
  baseline: {}
  with_weather: {system_prompt: "You help {{ metadata.who }}.", contexts: [weather]}
"""


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["openai", *(pytest.param(name, marks=pytest.mark.slow) for name in ("gadk", "ms"))])
def test_a_follow_up_keeps_what_was_said_and_what_tools_returned(project: Project, agent: str) -> None:
    project.write(eval_yaml=WEATHER)

    async def talk() -> tuple[list[str], Transcript]:
        async with Session.open("eval.yaml", agent=agent, metadata={"who": "Ada"}) as session:
            questions = ("What's the weather in Helsinki?", "And in Oslo?", "What about tomorrow?")
            return [await session.ask(text) for text in questions], session.transcript

    answers, transcript = asyncio.run(talk())

    asked = [(call.turn, call.arguments.get("city"), call.executions) for call in transcript.tool_calls]
    cities = {turn: city for turn, city, _ in asked if city}
    assert {0: "Helsinki", 1: "Oslo", 2: "Oslo"} == cities
    assert {1} == {executions for *_, executions in asked}
    assert "Oslo" in answers[1]
    assert 3 == len(transcript.turn_durations)


def test_a_session_can_begin_with_a_history_and_another_model(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(ON_PATH))  # for the gateway, which has the responder
    project.write(eval_yaml=WEATHER)

    async def talk() -> str:
        history = (Message("user", "What's the weather in Oslo?"), Message("assistant", "It is mild."))
        async with Session.open(
            Path("eval.yaml"), condition="baseline", model="simulated/double/scripted", history=history
        ) as session:
            return await session.ask("{script: [{text: 'I am {model}.'}]}")

    assert "I am double/scripted." == asyncio.run(talk())


def test_an_answer_can_be_followed_as_it_is_written(project: Project) -> None:
    project.write(eval_yaml=WEATHER)

    async def talk(*, streams: bool) -> tuple[list[LiveEvent], Transcript]:
        async with Session.open("eval.yaml", agent="openai", metadata={"who": "Ada"}, streams=streams) as session:
            events = [event async for event in session.follow("What's the weather in Helsinki?")]
            await session.ask("And in Oslo?")  # nobody follows
            return events, session.transcript

    followed, transcript = asyncio.run(talk(streams=True))
    whole, _ = asyncio.run(talk(streams=False))

    pieces = [event.data["text"] for event in followed if event.kind == "text_streamed"]
    (said,) = [event.data["text"] for event in followed if event.kind == "said"]
    assert ("".join(pieces), True) == (said, len(pieces) > 2)
    assert said in [message.text for message in transcript.messages]
    happened = ["turn_started", "model_called", "tool_called", "server_called", "server_returned", "tool_returned"]
    assert [*happened, "model_called", "said"] == [event.kind for event in whole]
    assert [event.kind for event in whole] == [event.kind for event in followed if event.kind != "text_streamed"]


def test_whoever_leaves_early_gives_an_answer_up(project: Project) -> None:
    project.write(eval_yaml=WEATHER)

    async def talk() -> Transcript:
        async with Session.open("eval.yaml", agent="openai", condition="baseline") as session:
            async with aclosing(session.follow("What's the weather in Helsinki?")) as events:
                assert "turn_started" == (await anext(events)).kind
                with pytest.raises(RuntimeError, match="one answer is followed at a time"):
                    await anext(session.follow("And in Oslo?"))
            return session.transcript

    assert ["What's the weather in Helsinki?"] == [message.text for message in asyncio.run(talk()).messages]


def test_an_answer_that_fails_raises_at_the_end_of_its_events(project: Project) -> None:
    project.write(eval_yaml="agents: {silent: {type: double/silent}}\nexecution: {timeout_seconds: 0.05}\n")

    async def talk() -> list[LiveEvent]:
        async with Session.open("eval.yaml") as session:
            return [event async for event in session.follow("Are you there?")]

    with pytest.raises(TrialError, match="no answer within"):
        asyncio.run(talk())


DISTURBED = """
agents:
  openai: {model: simulated/weather}
  gadk: {model: simulated/weather}
contexts: {weather: {}}
conditions: {with_weather: {contexts: [weather]}}
middleware: [{double/disturb: {faults: [{status: 429, retry_after: 0, share: 0.5}], seed: 1}}]
"""


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["openai", pytest.param("gadk", marks=pytest.mark.slow)])
def test_a_streamed_request_that_is_refused_is_repeated_below_the_agent(project: Project, agent: str) -> None:
    # `openai` passes its requests through the middleware itself, and `gadk` by the proxy.
    project.write(eval_yaml=DISTURBED)

    async def talk() -> tuple[list[str], Transcript]:
        async with Session.open("eval.yaml", agent=agent, streams=True) as session:
            pieces = []
            for city in ("Helsinki", "Oslo"):
                events = [event async for event in session.follow(f"What's the weather in {city}?")]
                pieces.append("".join(event.data["text"] for event in events if event.kind == "text_streamed"))
            return pieces, session.transcript

    pieces, transcript = asyncio.run(talk())

    assert {429} == {refusal.status for refusal in transcript.refusals}
    assert pieces == [message.text for message in transcript.messages if message.role == "assistant"]
    assert (2, 4) == (len(pieces), transcript.model_calls)


SCRIPTED = """
agents: {scripted: {}, modelled: {type: double/silent}}
conditions: {named: {system_prompt: "You help {{ who }}."}, baseline: {}}
execution: {timeout_seconds: 0.1}
"""


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"agent": "scripted"}, PluginError, "the agent 'scripted' cannot hold a conversation"),
        ({"agent": "scriptd"}, ConfigError, "no agent named 'scriptd'"),
        (
            {"agent": "modelled", "condition": "named"},
            ConfigError,
            "the prompt of the condition 'named' cannot be written: .*'who' is undefined",
        ),
        ({"condition": "base"}, ConfigError, "no condition named 'base'; did you mean 'baseline'"),
    ],
)
def test_what_cannot_be_opened_is_explained(
    project: Project, options: dict[str, str], error: type[Exception], told: str
) -> None:
    project.write(eval_yaml=SCRIPTED)

    async def talk() -> None:
        async with Session.open("eval.yaml", **options):  # type: ignore[arg-type]
            raise AssertionError

    with pytest.raises(error, match=told):
        asyncio.run(talk())


def test_an_answer_that_does_not_come_in_time_is_an_error(project: Project) -> None:
    project.write(eval_yaml="agents: {silent: {type: double/silent}}\nexecution: {timeout_seconds: 0.05}\n")

    async def talk() -> None:
        async with Session.open("eval.yaml") as session:
            await session.ask("Are you there?")

    with pytest.raises(TrialError, match="no answer within"):
        asyncio.run(talk())
