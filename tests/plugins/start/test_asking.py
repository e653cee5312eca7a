"""`keval init` at a terminal: at most five questions, and a wrong answer is asked for again."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
import yaml
from click.testing import CliRunner
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from keval.cli import main
from keval_gateway import ChatReply, ChatRequest, wire_urls
from keval_gateway.app import build_app
from keval_simulator.model import SimulatedModel
from tests.conftest import ON_PATH, Project
from tests.end_to_end.servers.model import served
from tests.stdio_server import look_up

README = Path(__file__).parents[3] / "README.md"
MOST = 5
CTRL_C = "\x03"
NEEDY = "import os, sys\nif os.environ.get('TARN_KEY') != 'of-tarn-1':\n    sys.exit('no TARN_KEY')\n"


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


def test_a_server_is_started_as_soon_as_it_is_named_and_a_wrong_one_loses_nothing(at_terminal: Project) -> None:
    (at_terminal.root / "needy.py").write_text(NEEDY + look_up("Port 7443."), encoding="utf-8")

    said = answered("1", "pyhton needy.py", "needy.py", "TARN_KEY=wrong", "TARN_KEY=of-tarn-1", "", "asked.jsonl")

    told = re.findall(r"^Error: (.*)$", said, re.MULTILINE)
    assert ["pyhton needy.py: server 'pyhton'", *["python needy.py: server 'needy'"] * 2] == [
        re.split(" did not|: command", line)[0] for line in told
    ]
    assert (2, 3) == (said.count("no TARN_KEY\n"), said.count("or only what it lacks: NAME or NAME=VALUE"))
    assert re.search(r"needy has 1 tool: look_up \(after \d.*s\)\n\nWhich model\?", said)
    assert {"TARN_KEY": "${TARN_KEY}"} == config(at_terminal)["contexts"]["needy"]["env"]
    assert "note: the value of TARN_KEY was not copied into the config" in said
    assert "of-tarn" not in (at_terminal.root / "eval.yaml").read_text(encoding="utf-8")


def test_a_variable_that_a_server_lacks_may_be_named_alone(
    at_terminal: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    (at_terminal.root / "needy.py").write_text(NEEDY + look_up("Port 7443."), encoding="utf-8")
    monkeypatch.setenv("TARN_KEY", "of-tarn-1")

    said = answered("1", "needy.py", "TARN_KEY", "", "asked.jsonl")

    assert (1, 1) == (said.count("Error: "), said.count("needy has 1 tool: look_up"))
    assert {"TARN_KEY": "${TARN_KEY}"} == config(at_terminal)["contexts"]["needy"]["env"]


def test_a_variable_that_a_file_refers_to_is_asked_for_and_neither_shown_nor_written(at_terminal: Project) -> None:
    (at_terminal.root / "needy.py").write_text(NEEDY + look_up("Port 7443."), encoding="utf-8")
    entry = '{"command": "python", "args": ["needy.py"], "env": {"TARN_KEY": "${env:TARN_KEY}"}}'
    (at_terminal.root / ".mcp.json").write_text(f'{{"mcpServers": {{"tarn": {entry}}}}}', encoding="utf-8")

    said = answered("1", "1", "of-tarn-1", "", "asked.jsonl", env={"TARN_KEY": None})

    assert "TARN_KEY (not shown, and not written): \n" in said
    assert "tarn has 1 tool: look_up" in said
    assert "of-tarn-1" not in said + (at_terminal.root / "eval.yaml").read_text(encoding="utf-8")


def test_a_url_that_wants_a_header_is_asked_for_that(at_terminal: Project) -> None:
    listed = {"tools": [{"name": "look_up", "inputSchema": {"type": "object"}}]}
    about = {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "x", "version": "1"},
    }

    async def guarded(request: Request) -> Response:
        if request.headers.get("authorization") != "Bearer of-tarn-1":
            return Response("who are you?", 403)
        message = await request.json() if request.method == "POST" else {}
        found = {"initialize": about, "tools/list": listed}.get(message.get("method", ""))
        if found is None:
            return Response(status_code=202 if request.method == "POST" else 405)
        return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "result": found})

    with served(Starlette(routes=[Route("/mcp", guarded, methods=["GET", "POST", "DELETE"])])) as base:
        said = answered("1", f"{base}/mcp", "Authorization: Bearer of-tarn-1", "", "asked.jsonl")
        given = at_terminal.keval(
            *("init", "flags", "--server", f"{base}/mcp", "--header", "Authorization: Bearer of-tarn-1")
        )

    assert ("who are you?" in said or "403" in said, "local has 1 tool: look_up" in said) == (True, True)
    wanted = {"Authorization": "Bearer ${LOCAL_AUTHORIZATION}"}
    flagged = yaml.safe_load((at_terminal.root / "flags" / "eval.yaml").read_text(encoding="utf-8"))
    assert 0 == given.code, given.stderr
    assert [wanted, wanted] == [each["contexts"]["local"]["headers"] for each in (config(at_terminal), flagged)]


def test_servers_of_the_folder_are_offered_as_what_starts_them(at_terminal: Project) -> None:
    at_terminal.write(mcp_json='{"mcpServers": {"tarn": {"command": "python", "args": ["server.py"]}}}')
    (at_terminal.root / "mcp.json").rename(at_terminal.root / "claude_desktop_config.json")
    at_terminal.write(
        harbour_py="from mcp.server.mcpserver import MCPServer\nMCPServer('harbour').run()",
        server_ts='import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";\nserver.connect(transport);',
        notes_py="MCP(",
        test_harbour_py="from mcp.server import x\nx.run()",
        pyproject_toml='[project]\ndependencies = ["mcp"]\n[project.scripts]\ntarn-mcp = "x:y"\n\n[tool.uv]',
    )

    said = answered("1", "6", "1", "", "asked.jsonl")

    offered = ["claude_desktop_config.json", "uv run tarn-mcp", "uv run harbour.py", "npx -y tsx server.ts"]
    assert offered == re.findall(r"^  [1-4]  ((?:claude|uv|npx).*)$", said, re.MULTILINE)
    assert "Error: a number from 1 to 4 is expected" in said
    assert ["tarn"] == [*config(at_terminal)["contexts"]]


def test_whether_tools_may_write_is_asked_before_questions_are_made(at_terminal: Project) -> None:
    refused = answered("1", "python server.py", "", "", "n")
    (at_terminal.root / "eval.yaml").unlink()
    flags = ("init", "deeper", "--server", "python server.py", "--generate", "1")
    kept, allowed = at_terminal.keval(*flags), at_terminal.keval(*("init", "other", *flags[2:], "--allow-writes"))

    why = "of 1 tool, none says that it only reads (readOnlyHint)"
    assert "look_up: no readOnlyHint, so calls may change something.\nMay keval call them" in refused
    assert (True, True, False) == (why in refused, why in kept.stderr, why in allowed.stderr)


def test_a_function_that_is_not_there_and_answers_to_other_questions_are_told_when_they_are_named(
    at_terminal: Project,
) -> None:
    at_terminal.write(others_jsonl='{"id": "b", "question": "Which host?", "answer": "tarn"}')

    function = answered("3", "python:my_agent.py:anser", "python:my_agent.py:answer", "", "", "")
    for name in ("eval.yaml", "keval.schema.json", "questions.jsonl"):
        (at_terminal.root / name).unlink()
    answers = answered("4", "answers.jsonl", "", "others.jsonl", "asked.jsonl")

    assert "has no function 'anser'; did you mean 'answer'?" in function
    assert "answers.jsonl:1: an answer to 'a', which the dataset does not have" in answers


def test_models_that_a_server_of_ones_own_has_are_offered_and_every_printed_line_runs(at_terminal: Project) -> None:
    asked: list[str] = []

    def respond(request: ChatRequest) -> ChatReply:
        asked.append(request.model)
        return SimulatedModel()(request)

    app = build_app(respond)

    async def with_models(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].endswith("/models"):
            names = ("qwen3:4b", "nomic-embed-text", "other")
            await JSONResponse({"data": [{"id": name} for name in names]})(scope, receive, send)
        else:
            await app(scope, receive, send)

    with served(with_models) as base:
        root = wire_urls(base)["openai-chat"]
        led: dict[str, str | None] = {"OLLAMA_API_BASE": root, "OLLAMA_API_KEY": None, "OPENAI_API_KEY": None}
        said = answered("1", "python server.py", "1", "asked.jsonl", env=led)
        printed = re.findall(r"^ +((?:\w+=\S+ )*)keval (run .*)$", said, re.MULTILINE)
        for settings, line in printed:
            # Also in place of the vendor's own address.
            given = {**dict(word.split("=", 1) for word in settings.split()), "OPENAI_BASE_URL": root}
            outcome = at_terminal.keval(*line.replace("MODEL", "of-mine").split(), env={**led, **given})
            assert 0 == outcome.code, outcome.stderr
            assert "SIMULATED" not in outcome.stdout

    assert re.search(r"^  2  ollama/qwen3:4b  answers at http.*\n  3  ollama/other ", said, re.MULTILINE)
    assert 3 == len(printed)
    (readme,) = re.findall(r"^```sh\n(.*?)^```", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert readme.splitlines() == [f"{settings}keval {line.replace(' eval.yaml', '')}" for settings, line in printed]
    assert ["qwen3:4b", "of-mine", "gpt-4o-mini"] == [*dict.fromkeys(asked)]
    assert re.search(r"^estimate of a run: about .* tokens, \$0 as .*\n +assumed: a call reads", said, re.MULTILINE)


@pytest.fixture
def terminal(project: Project) -> Iterator[Terminal]:
    project.write(harbour_py=look_up("Tarn listens on port 7443."), asleep_py="import time\ntime.sleep(600)")
    ours, theirs = pty.openpty()
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(ON_PATH), "TERM": "dumb"}
    process = subprocess.Popen(
        [sys.executable, "-m", "keval", "init", "mine"],
        cwd=project.root,
        env=environ,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    yield Terminal(ours, process)
    process.kill()
    process.wait()
    os.close(ours)


@attrs.define
class Terminal:
    """A terminal at which `keval init` runs, and what it has shown."""

    end: int
    process: subprocess.Popen[bytes]
    said: str = ""
    interrupted: bool = False

    def type(self, text: str, *, after: str) -> None:
        """Type when a text has been shown since what was typed last."""
        begun = len(self.said)
        while after not in self.said[begun:]:
            self.said += self.read()
        if text == CTRL_C:  # it is not the terminal of a session of its own, which would send the signal
            self.interrupted = True
            self.process.send_signal(signal.SIGINT)
        else:
            os.write(self.end, text.encode())

    def to_end(self) -> int:
        """Read until nobody writes, and return the exit code."""
        while piece := self.read():
            self.said += piece
        return self.process.wait(60)

    def read(self) -> str:
        # A signal between the prompt and the wait for a key is lost: a user would press the keys again.
        while self.interrupted and not select.select([self.end], [], [], 10)[0]:
            self.process.send_signal(signal.SIGINT)
        try:
            return os.read(self.end, 4096).decode(errors="replace").replace("\r\n", "\n")
        except OSError:  # Linux says so where the other end is closed
            return ""


@pytest.mark.slow
def test_a_person_at_a_terminal_mistypes_a_server_and_comes_to_a_result(terminal: Terminal, project: Project) -> None:
    terminal.type("\n", after="A number")
    terminal.type("python habrour.py\n", after="Which server?")
    terminal.type("harbour.py\n", after="or only what it lacks")
    terminal.type("\n", after="Which model?")
    terminal.type("nowhere.jsonl\n", after="Where are the questions?")
    terminal.type("generate\n", after="there is no file nowhere.jsonl")
    terminal.type("n\n", after="May keval call them")

    assert (0, True) == (terminal.to_end(), "\nnext  cd mine && keval run eval.yaml\n" in terminal.said), terminal.said
    assert "harbour has 1 tool: look_up" in terminal.said
    assert "Traceback" not in terminal.said
    assert 0 == project.keval("validate", "mine/eval.yaml").code


@pytest.mark.slow
@pytest.mark.parametrize("typed", [["\n", CTRL_C], ["\n", "python asleep.py\n", CTRL_C]], ids=["asked", "starting"])
def test_ctrl_c_leaves_nothing(terminal: Terminal, project: Project, typed: list[str]) -> None:
    before = sorted(project.root.iterdir())
    for text, after in zip(typed, ("A number", "Which server?", "python asleep.py"), strict=False):
        terminal.type(text, after=after)

    assert (130, True) == (terminal.to_end(), "interrupted; nothing was written\n" in terminal.said), terminal.said
    assert before == sorted(project.root.iterdir())
    assert "Traceback" not in terminal.said
