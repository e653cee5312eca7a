"""What a trial leaves behind, which is nothing, and what many at once have to do with each other, which is nothing."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from keval import Sample
from keval.plugin import Context, McpServer, Model
from keval_gateway import ChatCall, ChatReply, ChatRequest
from keval_ms import Ms


def alive(journal: Path) -> list[int]:
    """Return the server processes that still run."""
    pids = [int(line.removeprefix("pid ")) for line in journal.read_text("utf-8").splitlines() if "pid " in line]
    assert pids
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


async def told(beacon: socket.socket, line: str) -> None:
    """Wait until a server notes `line`."""
    while line not in (await asyncio.get_running_loop().sock_recv(beacon, 1000)).decode():
        pass


def strangers(before: set[Any]) -> list[Any]:
    """Return the tasks that are new since, apart from those of the gateway, which is in the same loop."""
    new = asyncio.all_tasks() - before
    return [task for task in new if "uvicorn" not in repr(task)]


@pytest.fixture
def beacon() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as beacon:
        beacon.bind(("127.0.0.1", 0))
        beacon.setblocking(False)
        yield beacon


MOMENTS = ["connecting over stdio", "asking over stdio", "calling over stdio", "asking over http", "calling over http"]


@pytest.fixture(params=MOMENTS)
def victim(
    request: Any, stdio: Any, start_toolbox: Any, beacon: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, McpServer]:
    """The moment to cancel a trial at, and its server, which tells the beacon what it does."""
    monkeypatch.setattr("mcp.client.stdio.PROCESS_TERMINATION_TIMEOUT", 0.2)
    moment, _, transport = request.param.split()
    arguments = ("--beacon", str(beacon.getsockname()[1]))
    if transport == "http":
        return moment, start_toolbox("http", *arguments).server()
    return moment, stdio(*arguments, transport="mute" if moment == "connecting" else "stdio")


def test_a_trial_cancelled_while_a_server_does_not_answer_leaves_nothing(runner: Any, staged: Any) -> None:
    async def scenario() -> list[Any]:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            silent.setblocking(False)
            url = f"http://127.0.0.1:{silent.getsockname()[1]}/mcp"
            async with staged([]) as scene:
                before = asyncio.all_tasks()
                context = Context(servers=(McpServer("silent", "http", url),))
                trial = asyncio.create_task(scene.agent.run(Sample("s1", "How are you?"), context))
                connection, _ = await asyncio.get_running_loop().sock_accept(silent)
                trial.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await trial
                connection.close()
                return strangers(before)

    assert runner.run(asyncio.wait_for(scenario(), 30)) == []


def test_a_closed_adapter_can_be_used_again(runner: Any, staged: Any) -> None:
    async def scenario() -> list[str]:
        async with staged([ChatReply("One."), ChatReply("Two.")]) as scene:
            first = await scene.agent.run(Sample("s1", "?"), Context())
            await scene.agent.aclose()
            second = await scene.agent.run(Sample("s1", "?"), Context())
            return [first.output, second.output]

    assert runner.run(scenario()) == ["One.", "Two."]


def test_trials_at_once_do_not_mix(runner: Any, staged: Any, toolbox: Any) -> None:
    def model(request: ChatRequest) -> ChatReply:
        last = request.messages[-1]
        if last.role == "tool":
            return ChatReply(f"{request.trial} heard {last.text}")
        return ChatReply(calls=(ChatCall("echo", {"text": last.text}), ChatCall("echo", {"text": request.trial})))

    async def scenario() -> list[Any]:
        async with staged(model) as scene:
            trials = [
                scene.agent.run(
                    Sample(f"s{n}", f"question {n}"),
                    Context(servers=(toolbox.server(),), model_headers={"x-keval-trial": f"t{n}"}, seed=n),
                )
                for n in range(12)
            ]
            return await asyncio.gather(*trials)

    transcripts = runner.run(scenario())

    for n, transcript in enumerate(transcripts):
        assert [f"question {n}", f"t{n}"] == [c.result for c in transcript.tool_calls]
        assert transcript.output.startswith(f"t{n} heard")
        assert transcript.model_calls == 2


def test_a_server_gets_its_environment_and_directory(play: Any, stdio: Any, tmp_path: Path) -> None:
    script = [ChatReply(calls=(ChatCall("where-am-i", {}),)), ChatReply("There.")]

    outcome = play(script, stdio(env={"KEVAL_TRIAL": "t1"}, cwd=str(tmp_path)))

    assert [f"{tmp_path} t1"] == [call.result for call in outcome.transcript.tool_calls]


@pytest.mark.parametrize("transport", ["http", "sse"])
def test_a_servers_headers_are_sent_with_every_request(play: Any, start_toolbox: Any, transport: str) -> None:
    server = start_toolbox(transport, "--guarded").server(headers={"x-keval-trial": "t1"})

    outcome = play([ChatReply(calls=(ChatCall("echo", {"text": "hm"}),)), ChatReply("Done.")], server)

    assert (outcome.error, outcome.transcript.output) == (None, "Done.")


def test_a_servers_stderr_does_not_reach_the_terminal(play: Any, stdio: Any, capfd: Any) -> None:
    play([ChatReply(calls=(ChatCall("die", {}),))], stdio())

    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_the_sdks_logs_reach_the_terminal_only_where_logging_is_configured() -> None:
    code = """if True:
        import logging
        from keval.plugin import Endpoint, Model
        from keval_ms import Ms
        from keval_ms.conversation import Clients

        Clients.build("openai-chat", "http://127.0.0.1:1", Endpoint("m", {}, "secret"), 20)
        logging.getLogger("agent_framework.openai").warning("unconfigured")
        logging.getLogger("mcp.client.streamable_http").warning("unconfigured")
        logging.basicConfig(format="%(message)s")
        logging.getLogger("agent_framework").warning("configured")
    """

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stderr == "configured\n"


def test_making_an_adapter_imports_no_sdk() -> None:
    heavy = ("agent_framework", "openai", "mcp", "httpx2", "pydantic")
    code = (
        "import sys; from keval.plugin import Model; from keval_ms import Ms; Ms(Model.parse('openai/gpt-4o-mini'));"
        f" print([name for name in {heavy} if name in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_a_bound_below_one_model_call_is_refused() -> None:
    with pytest.raises(ValueError, match="max_turns"):
        Ms(Model.parse("openai/gpt-4o-mini"), max_turns=0)
