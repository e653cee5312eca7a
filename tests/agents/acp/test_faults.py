"""Agents that fail, in their own ways, and agents that speak no such protocol."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keval import Message, Sample
from keval.plugin import Context, McpServer, PreflightError, TranscriptBuilder, TrialError
from keval_acp import Acp
from keval_testing import calls_tools, says
from keval_testing.agent_stage import QUESTION, AgentStage
from tests.agents.acp.conftest import coder
from tests.agents.stage import CODER, OWN_AGENTS
from tests.processes import children


async def until(happened: Callable[[], bool]) -> None:
    while not happened():  # noqa: ASYNC110 - it happens in another process
        await asyncio.sleep(0.01)


CODE = (sys.executable, "-S", str(CODER))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "kind", "said"),
    [
        ("die", "process", "ended with exit code 1; its stderr ends:\nout of memory"),
        ("die-late", "process", "ended with exit code 1; its stderr ends:\nout of memory"),
        ("no-http", "servers_unsupported", "cannot take MCP server 'sums' over http"),
        ("turns", "max_turns", "gave up after as many model calls as it allows itself"),
        ("cancelled", "cancelled", "cancelled the turn by itself"),
        ("odd-end", "protocol", "answers otherwise than the Agent Client Protocol says"),
        ("error", "agent_error", "answered with error -32603: out of ideas"),
    ],
)
def test_an_agent_that_fails_is_told_by_kind(play: Any, fault: str, kind: str, said: str) -> None:
    outcome = play(says("Too late."), flags=("--fault", fault))

    error = outcome.error
    assert isinstance(error, TrialError)
    assert (kind, True) == (error.kind, said in str(error))


@pytest.mark.parametrize(
    ("fault", "kind", "said"),
    [
        ("version", "protocol", "speaks version 9 of the Agent Client Protocol, and keval version 1"),
        ("login", "login", "wants a login (it offers: key)"),
    ],
)
def test_an_agent_that_opens_no_session_is_told_by_kind(
    runner: asyncio.Runner, fault: str, kind: str, said: str
) -> None:
    with pytest.raises(TrialError, match=re.escape(said)) as failure:
        runner.run(Acp(command=(*CODE, "--fault", fault)).run(QUESTION, Context()))

    assert kind == failure.value.kind


def test_an_agent_that_takes_its_answer_back_has_refused(play: Any) -> None:
    outcome = play(says("How about no."), flags=("--fault", "refuse"))

    assert isinstance(outcome.error, TrialError)
    assert ("model", "refused") == (outcome.error.stage, outcome.error.kind)


def test_lines_that_are_no_message_and_updates_that_nobody_knows_are_passed_over(play: Any, capfd: Any) -> None:
    outcome = play(says("It is 5."), flags=("--fault", "garbage"))

    assert (None, "It is 5.") == (outcome.error, outcome.transcript.output)
    assert ("", "") == capfd.readouterr()


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["hang", "deaf"])
def test_an_agent_that_is_cancelled_is_told_so_and_ends_with_what_it_started(
    runner: asyncio.Runner, stage: AgentStage, tmp_path: Path, fault: str
) -> None:
    journal = tmp_path / "journal.txt"
    adapter = coder("--fault", fault, "--journal", str(journal), "--own")

    async def scenario() -> set[str]:
        before = children()
        async with stage.agent(adapter.build, [says("Too late.")]) as staged, staged.trial() as running:
            await until(lambda: bool(running.transcript.messages))
            running.task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running.task
        return children() - before

    assert set() == runner.run(asyncio.wait_for(scenario(), 30))
    assert journal.exists() == (fault == "hang")


@pytest.mark.slow
def test_a_command_in_a_terminal_ends_with_the_trial(runner: asyncio.Runner, stage: AgentStage, tmp_path: Path) -> None:
    mark = tmp_path / "started"
    script = calls_tools(("shell", {"command": f"sleep 3600 & touch {mark}; sleep 3600"}))

    async def scenario() -> set[str]:
        before = children()
        async with stage.agent(coder("--own").build, [script]) as staged, staged.trial() as running:
            await until(mark.exists)
            running.task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running.task
        return children() - before

    assert set() == runner.run(asyncio.wait_for(scenario(), 30))


def prepared(runner: asyncio.Runner, **options: Any) -> str:
    agent = Acp(**{"command": CODE, **options})
    with pytest.raises(PreflightError) as failure:
        runner.run(asyncio.wait_for(agent.prepare(), 30))
    return str(failure.value)


def test_a_program_that_is_not_found_or_speaks_no_such_protocol_is_found_before_the_run(
    runner: asyncio.Runner, tmp_path: Path
) -> None:
    (tmp_path / "hello.py").write_text("print('Hello!'); input(); print('Bye.')", encoding="utf-8")

    assert "the command 'no-such-agent' is not found on PATH" in prepared(runner, command=("no-such-agent",))
    told = prepared(runner, command=(sys.executable, "hello.py"), folder=tmp_path)
    assert "python ended with exit code 0; its output ends:\nHello!\nBye." in told
    assert "wants a login" in prepared(runner, command=(*CODE, "--fault", "login"))
    assert "has no login 'kye'; did you mean 'key'?" in prepared(runner, login="kye")
    assert "has no mode 'bald'; did you mean 'bold'?" in prepared(runner, mode="bald")
    assert "has no setting 'model'" in prepared(runner, settings={"model": "m"})


def test_an_agent_that_opens_a_session_in_a_mode_it_has_is_ready(runner: asyncio.Runner) -> None:
    runner.run(asyncio.wait_for(Acp(command=CODE, mode="bold").prepare(), 30))


def test_a_login_is_made_first_where_one_is_chosen(play: Any) -> None:
    outcome = play(says("It is 5."), flags=("--fault", "login"), login="key")

    assert (None, "It is 5.") == (outcome.error, outcome.transcript.output)


def test_a_program_that_says_nothing_is_given_up(runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    from keval_acp import session

    monkeypatch.setattr(session, "_PATIENCE", 0.5)

    told = prepared(runner, command=(sys.executable, "-c", "print('One moment …'); import time; time.sleep(60)"))

    assert "python opens no session within 0.5 s" in told


def test_earlier_messages_have_no_place(runner: asyncio.Runner) -> None:
    sample = Sample("s1", "Who am I?", history=(Message("user", "I am Ada."),))

    with pytest.raises(TrialError) as failure:
        runner.run(Acp(command=CODE).run(sample, Context()))

    assert "history_unsupported" == failure.value.kind


def test_what_the_protocol_cannot_hand_over_may_be_handed_over_by_an_option(play: Any) -> None:
    env = {**OWN_AGENTS["acp"].options["env"], "SERVERS": "{mcp_config}", "EARLIER": "{history_file}"}
    sample = Sample("s1", "Who am I?", history=(Message("user", "I am Ada."),))

    outcome = play(says("Ada."), flags=("--fault", "no-http"), env=env, sample=sample)

    assert (None, "Ada.") == (outcome.error, outcome.transcript.output)


def test_options_with_unknown_placeholders_are_refused() -> None:
    wrong: list[dict[str, Any]] = [
        {"env": {"A": "{modle}"}},
        {"meta": {"a": ["{question}"]}},
        {"command": ("a", "{model}")},
        {"files": {"a": "{{ modle }}"}},
    ]
    for options in wrong:
        with pytest.raises(ValueError, match=r"known (placeholders|variables)|without a model"):
            Acp(**{"command": CODE, **options})


def test_servers_without_a_tap_are_started_by_the_agent_in_their_folder(runner: asyncio.Runner, tmp_path: Path) -> None:
    server = McpServer("local", "stdio", command="pwd", args=("-P",), env={"A": "1"}, cwd=str(tmp_path))

    with pytest.raises(TrialError) as failure:
        runner.run(Acp(command=(*CODE, "--fault", "servers")).run(QUESTION, Context(servers=(server,))))

    (given,) = json.loads("[" + str(failure.value).partition("[")[2].partition("; give")[0])
    assert ("local", [{"name": "A", "value": "1"}]) == (given["name"], given["env"])
    ran = subprocess.run([given["command"], *given["args"]], capture_output=True, text=True, check=True)
    assert f"{tmp_path}\n" == ran.stdout


def test_what_the_agent_wrote_beside_is_kept_of_a_trial_that_is_cut_short(runner: asyncio.Runner) -> None:
    builder = TranscriptBuilder()

    with pytest.raises(TrialError):
        runner.run(Acp(command=(*CODE, "--fault", "die")).run(QUESTION, Context(builder=builder)))

    assert "out of memory" == builder.written
