"""`keval init` at a terminal: at most five questions, and a wrong answer is asked for again."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from keval.cli import main
from tests.conftest import ON_PATH, Project
from tests.stdio_server import look_up

MOST = 5


def config(project: Project) -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load((project.root / "eval.yaml").read_text(encoding="utf-8"))
    return data


@pytest.fixture
def at_terminal(project: Project) -> Project:
    project.write(
        server_py=look_up("Tarn listens on port 7443."),
        my_agent_py="def answer(question):\n    return 'Port 7443.'",
        asked_jsonl='{"id": "a", "question": "Which port?", "answer": "7443"}',
        answers_jsonl='{"id": "a", "response": "7443"}',
    )
    return project


def answered(*answers: str, env: dict[str, str | None] | None = None) -> str:
    """What is printed to who gives these answers; another question would find the input at its end, and fail."""
    typed = "".join(f"{answer}\n" for answer in answers)
    result = CliRunner().invoke(main, ["init"], input=typed, env=env, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


GOALS: dict[str, tuple[list[str], dict[str, Any]]] = {
    "server": (["", "python server.py", "", "asked.jsonl"], {"agents": ["openai"], "contexts": ["server"]}),
    "agents": (
        ["2", "openai, anthropic", "", "", "asked.jsonl"],
        {"agents": ["openai", "anthropic"], "contexts": []},
    ),
    "agent": (
        ["3", "python:my_agent.py:answer", "", "simulated/other", ""],
        {"agents": ["plain", "my_agent"], "contexts": []},
    ),
    "answers": (["4", "answers.jsonl", "1", "asked.jsonl"], {"agents": ["answers"], "contexts": []}),
}


@pytest.mark.parametrize("goal", GOALS)
def test_each_goal_takes_at_most_five_answers(at_terminal: Project, goal: str) -> None:
    answers, expected = GOALS[goal]
    assert len(answers) <= MOST

    said = answered(*answers)

    data = config(at_terminal)
    assert expected == {"agents": [*data["agents"]], "contexts": [*data.get("contexts", {})]}
    assert "next  keval run eval.yaml" in said


def test_a_key_that_is_set_is_offered(at_terminal: Project) -> None:
    keys = {
        "ANTHROPIC_API_KEY": None,
        "GOOGLE_API_KEY": None,
        "GEMINI_API_KEY": None,
        "OPENAI_API_KEY": "a-key-of-mine",
    }

    said = answered("1", "python server.py", "openai/gpt-4o", "asked.jsonl", env=keys)

    assert re.search(r"^  \d  openai/gpt-4o-mini  +OPENAI_API_KEY is set$", said, re.MULTILINE)
    assert "anthropic/" not in said
    assert "a-key-of-mine" not in said
    assert {"model": "openai/gpt-4o"} == config(at_terminal)["judge"]


def test_the_file_of_a_client_is_offered(at_terminal: Project) -> None:
    (at_terminal.root / ".mcp.json").write_text(
        '{"mcpServers": {"tarn": {"command": "python", "args": ["server.py"]}}}', encoding="utf-8"
    )

    said = answered("1", "", "", "asked.jsonl")

    assert "[.mcp.json]" in said
    assert ["tarn"] == [*config(at_terminal)["contexts"]]


def test_a_file_of_questions_that_is_there_is_offered(at_terminal: Project) -> None:
    (at_terminal.root / "asked.jsonl").rename(at_terminal.root / "questions.jsonl")

    said = answered("1", "python server.py", "1", "")

    assert "[questions.jsonl]" in said
    assert "(1 sample)" in said


def test_a_wrong_answer_is_asked_for_again_with_the_reason(at_terminal: Project) -> None:
    said = answered("9", "3", "nobody:x", "python:my_agent.py:answer", "", "opnai/x", "1", "no.jsonl", "")

    told = re.findall(r"^Error: (.*)$", said, re.MULTILINE)
    assert [
        "a number from 1 to 4 is expected",
        "--agent nobody:x: no agent named 'nobody' is installed",
        "no provider of models named 'opnai' is installed; did you mean 'openai'?",
        "there is no file no.jsonl",
    ] == [line.partition("; installed")[0] for line in told]
    assert ["plain", "my_agent"] == [*config(at_terminal)["agents"]]


@pytest.mark.parametrize("typed", ["", "1\n", "1\npython server.py\n1\nno.jsonl\n"], ids=["nothing", "less", "wrong"])
def test_input_that_ends_before_all_is_answered_is_an_error(at_terminal: Project, typed: str) -> None:
    result = CliRunner().invoke(main, ["init"], input=typed)

    told = "error: the input ended before all was answered; answer every question, or say by flags what to evaluate"
    assert (2, True) == (result.exit_code, told in result.stderr)
    assert not (at_terminal.root / "eval.yaml").exists()


def test_in_kevals_own_repository_another_folder_is_asked_for(at_terminal: Project) -> None:
    own = at_terminal.root / "clone"
    for part in ("core/keval", "plugins/start/src/keval_start"):
        (own / part).mkdir(parents=True)
    (own / "core/keval/__init__.py").touch()
    monkey = CliRunner()

    flagged = monkey.invoke(main, ["init", "clone/mine", "--agent", "python:my_agent.py:answer"])
    asked = monkey.invoke(main, ["init", "clone"], input="clone/docs\nmine\n3\npython:my_agent.py:answer\n\n\n\n")

    told = "DIR clone/mine: it is in the repository of keval itself; name a folder outside of it"
    assert (2, True) == (flagged.exit_code, told in flagged.stderr)
    assert 0 == asked.exit_code, asked.output
    assert "clone is in the repository of keval itself. Which folder is for the evaluation?" in asked.stdout
    assert "that is in the repository of keval, too; name a folder outside of it" in asked.output
    assert "next  cd mine && keval run eval.yaml" in asked.stdout
    assert not (own / ".github").exists()


@pytest.mark.slow
def test_a_person_at_a_terminal_is_asked(project: Project) -> None:
    project.write(my_agent_py="def answer(question):\n    return 'Port 7443.'")
    ours, theirs = pty.openpty()
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(ON_PATH), "TERM": "dumb"}

    process = subprocess.Popen(
        [sys.executable, "-m", "keval", "init"],
        cwd=project.root,
        env=environ,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    os.write(ours, b"3\npython:my_agent.py:answer\n\n\n\n")
    said = read_to_end(ours)

    assert (0, True) == (process.wait(60), "next  keval run eval.yaml" in said), said


def read_to_end(terminal: int) -> str:
    """What was written to a terminal, until nobody writes to it."""
    said = b""
    while True:
        try:
            piece = os.read(terminal, 4096)
        except OSError:  # Linux says so where the other end is closed
            piece = b""
        if not piece:
            os.close(terminal)
            return said.decode()
        said += piece
