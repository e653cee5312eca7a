"""What a trial leaves behind, which is nothing, and what many at once have to do with each other, which is nothing."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from keval import Sample
from keval.plugin import Context, McpServer, Model
from keval.seams.interfaces import ConcurrencyLimited
from keval_gateway import ChatCall, ChatReply, ChatRequest

pytest.importorskip("claude_agent_sdk", reason="keval-claude-code is not installed")

SAMPLE = Sample("s1", "How are you?")


def running(pid: int) -> bool:
    """Whether a process does anything any more; one that was killed may wait for a moment to be forgotten."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state not in "ZX"


def claudes() -> list[int]:
    """Return the children of this process that run Claude Code."""
    command = ["ps", "-ww", "-o", "pid,args", "--ppid", str(os.getpid())]
    listing = subprocess.run(command, capture_output=True, text=True).stdout
    return [int(line.split()[0]) for line in listing.splitlines() if "--bare" in line]


def strangers(before: set[Any]) -> list[Any]:
    """Return the tasks that are new since, apart from those of the gateway, which is in the same loop."""
    return [task for task in asyncio.all_tasks() - before if "uvicorn" not in repr(task)]


async def told(beacon: socket.socket, line: str) -> None:
    """Wait until a server notes `line`."""
    while line not in (await asyncio.get_running_loop().sock_recv(beacon, 1000)).decode():
        pass


@pytest.fixture
def beacon() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as beacon:
        beacon.bind(("127.0.0.1", 0))
        beacon.setblocking(False)
        yield beacon


@pytest.fixture(params=["connecting", "asking", "calling"])
def victim(request: Any, stdio: Any, beacon: socket.socket) -> tuple[str, McpServer]:
    """The moment to cancel a trial at, and its server, which tells the beacon what it does."""
    transport = "mute" if request.param == "connecting" else "stdio"
    return request.param, stdio("--beacon", str(beacon.getsockname()[1]), transport=transport)


@pytest.fixture
def remains(journal: Path, temporary: Path) -> Callable[[], list[Any]]:
    """Say what is left of a trial: its server, its Claude Code and its directory."""

    def left() -> list[Any]:
        server = int(journal.read_text("utf-8").split()[1])
        return [*filter(running, [server]), *claudes(), *temporary.iterdir()]

    return left


@pytest.mark.parametrize("times", [1, 2])
def test_a_cancelled_trial_leaves_nothing_but_its_record(
    runner: Any, staged: Any, *, victim: tuple[str, McpServer], beacon: socket.socket, remains: Any, times: int
) -> None:
    moment, server = victim
    context = Context(servers=(server,))

    def called() -> list[str]:
        return [call.name for call in context.builder.transcript().tool_calls]

    async def scenario() -> tuple[list[Any], float]:
        asked = asyncio.Event()

        async def model(request: ChatRequest) -> ChatReply:
            asked.set()
            if moment == "asking":
                await asyncio.Event().wait()
            return ChatReply(calls=(ChatCall("mcp__toolbox__hang", {}),))

        async with staged(model) as scene:
            before = asyncio.all_tasks()
            trial = asyncio.create_task(scene.agent.run(SAMPLE, context))
            await (asked.wait() if moment == "asking" else told(beacon, "pid" if moment == "connecting" else "hang"))
            # A server can know of a call before Claude Code's message about it is read.
            while moment == "calling" and not called():  # noqa: ASYNC110 - another process tells it
                await asyncio.sleep(0.01)
            began = asyncio.get_running_loop().time()
            for _ in range(times):
                trial.cancel()
                # Let it get to its clean-up before the next.
                await asyncio.sleep(0)
            with pytest.raises(asyncio.CancelledError):
                await trial
            return strangers(before), asyncio.get_running_loop().time() - began

    left, took = runner.run(asyncio.wait_for(scenario(), 30))

    assert [] == left
    assert took < 4
    assert [] == remains()
    assert (["hang"] if moment == "calling" else []) == called()


def test_a_finished_trial_leaves_no_process_no_task_and_no_file(
    runner: Any, staged: Any, stdio: Any, remains: Any
) -> None:
    async def scenario() -> list[Any]:
        async with staged([ChatReply("Fine.")]) as scene:
            before = asyncio.all_tasks()
            await scene.agent.run(SAMPLE, Context(servers=(stdio(),)))
            return strangers(before)

    assert [] == runner.run(scenario())
    assert [] == remains()


def test_ten_trials_at_once_do_not_mix(runner: Any, staged: Any, toolbox: Any) -> None:
    async def model(request: ChatRequest) -> ChatReply:
        last = request.messages[-1]
        if last.role == "tool":
            return ChatReply(f"{request.trial} got {last.text}")
        return ChatReply(calls=(ChatCall("mcp__toolbox__echo", {"text": last.text}),))

    async def scenario() -> list[tuple[str, ...]]:
        async with staged(model, max_processes=5) as scene:
            await scene.agent.prepare()
            trials = [
                scene.agent.run(
                    Sample(f"s{n}", f"question {n}"),
                    Context(servers=(toolbox.server(),), model_headers={"x-keval-trial": f"t{n}"}),
                )
                for n in range(10)
            ]
            transcripts = await asyncio.gather(*trials)
            return [
                (transcript.output, *(str(call.arguments) for call in transcript.tool_calls))
                for transcript in transcripts
            ]

    expected = [(f't{n} got {{"result":"question {n}"}}', str({"text": f"question {n}"})) for n in range(10)]
    assert expected == runner.run(scenario())


def test_the_core_is_told_how_many_processes_may_run_at_once() -> None:
    from keval_claude_code import ClaudeCode

    agent = ClaudeCode(model=Model("anthropic", "claude-sonnet-5-5"), max_processes=3)

    assert isinstance(agent, ConcurrencyLimited)
    assert 3 == agent.max_concurrency()


def test_checking_a_config_does_not_import_the_sdk() -> None:
    script = (
        "import sys, keval.plugin, keval_claude_code\n"
        "keval_claude_code.ClaudeCode(model=keval.plugin.Model.parse('anthropic/claude-sonnet-5-5'))\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('claude_agent_sdk', 'mcp', 'anyio')])"
    )

    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert "[]\n" == result.stdout
