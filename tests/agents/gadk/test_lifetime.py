"""What a trial opens it closes, however it ends; and trials at the same time do not mix."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from keval import Sample, Transcript
from keval.plugin import Context, McpServer, TranscriptBuilder
from keval_gadk import Api
from keval_gateway import ChatCall, ChatReply, ChatRequest

if TYPE_CHECKING:
    from tests.agents.gadk.conftest import Driver

MUTE = Path(__file__).parent / "servers" / "mute.py"


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    """A named pipe: reading it waits until a server has written its process id."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


def _is_running(process: int) -> bool:
    return Path(f"/proc/{process}").exists()


async def _cancelled_once_started(trial: asyncio.Task[Transcript], pipe: Path) -> int:
    """Cancel a trial when its server has started; return the server's process id."""
    process = int(await asyncio.to_thread(pipe.read_text, encoding="utf-8"))
    assert _is_running(process)
    trial.cancel()
    async with asyncio.timeout(20):  # less than any timeout of the server's
        with pytest.raises(asyncio.CancelledError):
            await trial
    return process


def test_a_trial_cancelled_in_a_tool_call_leaves_nothing_behind(
    driver: Driver, stdio_server: McpServer, pipe: Path
) -> None:
    builder = TranscriptBuilder()
    context = Context(servers=(stdio_server,), builder=builder)
    call = ChatCall("hang", {"path": str(pipe)})

    async def scenario() -> int:
        agent = driver.run_async(lambda _: ChatReply(calls=(call,)), context)
        process = await _cancelled_once_started(asyncio.create_task(agent), pipe)
        assert {asyncio.current_task()} == asyncio.all_tasks()
        return process

    process = asyncio.run(scenario())

    assert not _is_running(process)
    assert [call.name for call in builder.transcript().tool_calls] == ["hang"]
    assert builder.transcript().duration is not None


def test_a_trial_cancelled_while_it_connects_leaves_nothing_behind(driver: Driver, pipe: Path) -> None:
    mute = McpServer("mute", "stdio", command=sys.executable, args=(str(MUTE), str(pipe)), timeout=300.0)

    async def scenario() -> int:
        agent = driver.run_async(lambda _: ChatReply("Sunny."), Context(servers=(mute,)))
        process = await _cancelled_once_started(asyncio.create_task(agent), pipe)
        assert {asyncio.current_task()} == asyncio.all_tasks()
        return process

    process = asyncio.run(scenario())

    assert not _is_running(process)
    assert driver.requests == []


def test_a_finished_trial_leaves_no_process_and_no_session(driver: Driver, stdio_server: McpServer) -> None:
    from google.adk.sessions import Session

    def respond(request: ChatRequest) -> ChatReply:
        if request.messages[-1].role == "tool":
            return ChatReply("Done.")
        return ChatReply(calls=(ChatCall("process_id", {}),))

    def sessions() -> list[Session]:
        return [kept for kept in gc.get_objects() if type(kept) is Session]

    earlier = sessions()  # what the errors of earlier tests hold
    transcript = driver.run(respond, Context(servers=(stdio_server,)))

    gc.collect()
    assert not _is_running(int(transcript.tool_calls[0].result or ""))
    assert [kept for kept in sessions() if all(kept is not known for known in earlier)] == []


@pytest.mark.slow
@pytest.mark.parametrize("api", ["gemini", "chat"])
def test_trials_at_once_do_not_mix(driver: Driver, http_server: McpServer, api: Api) -> None:
    def respond(request: ChatRequest) -> ChatReply:
        if request.messages[-1].role == "tool":
            return ChatReply(f"{request.trial} asked about {request.messages[0].text}")
        return ChatReply(calls=(ChatCall("get_weather", {"city": request.messages[0].text}),))

    def context(n: int) -> Context:
        return Context(servers=(http_server,), model_headers={"x-keval-trial": f"t{n}"})

    async def scenario() -> list[Transcript]:
        agent = driver.agent(respond, api=api)
        try:
            return await asyncio.gather(*(agent.run(Sample(f"s{n}", f"City {n}"), context(n)) for n in range(12)))
        finally:
            await agent.aclose()

    transcripts = asyncio.run(scenario())

    expected = [(f"City {n}: 21 degrees, metric", f"t{n} asked about City {n}") for n in range(12)]
    assert expected == [(trial.tool_calls[0].result, trial.output) for trial in transcripts]
    assert len(driver.requests) == 24


def test_an_adapter_can_be_closed_twice_and_used_again(driver: Driver) -> None:
    async def scenario() -> str:
        agent = driver.agent(lambda _: ChatReply("Sunny."))
        await agent.aclose()
        await agent.run(Sample("s1", "Weather?"), Context())
        await agent.aclose()
        await agent.aclose()
        transcript = await agent.run(Sample("s1", "Weather?"), Context())
        await agent.aclose()
        return transcript.output

    assert asyncio.run(scenario()) == "Sunny."
