"""The pages about agents of the user's: their files, written into an empty folder, run with their commands."""

from __future__ import annotations

import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib import metadata
from pathlib import Path

import pytest

from keval_loopback.loopback import listen
from tests.conftest import Project, serve_here
from tests.docs.test_snippets import AGENTS, FILE

PAGES = sorted(AGENTS.glob("*.md"))
FRAMEWORKS = AGENTS / "frameworks.md"
RECIPES = {"langgraph": "langchain", "openai-agents": "openai-agents", "pydantic-ai": "pydantic-ai-slim"}
"""The agents of the page about frameworks, and the package that each of them needs, which is installed apart."""
_COMMANDS = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
_PORT = re.compile(r"http://127\.0\.0\.1:(\d+)")


def files_of(page: Path) -> dict[str, str]:
    """The files of a page, by name."""
    return dict(FILE.findall(page.read_text(encoding="utf-8")))


def commands_of(page: Path) -> list[list[str]]:
    blocks = _COMMANDS.findall(page.read_text(encoding="utf-8"))
    return [shlex.split(line) for block in blocks for line in block.splitlines()]


@contextmanager
def running(command: Sequence[str], folder: Path, port: int) -> Iterator[None]:
    """Run a server of a page, which is up when it listens."""
    with subprocess.Popen([sys.executable, *command[1:-1]], cwd=folder) as server:
        try:
            while server.poll() is None:
                with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
                with suppress(subprocess.TimeoutExpired):
                    server.wait(0.05)
            yield
        finally:
            server.terminate()


WHOLE = [page for page in PAGES if "eval.yaml" in files_of(page) and page != FRAMEWORKS]


@pytest.mark.parametrize("page", WHOLE, ids=lambda page: page.stem)
def test_the_files_of_a_page_are_all_that_it_takes(
    page: Path, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve_here(monkeypatch)
    files, commands = files_of(page), commands_of(page)
    with listen() as free:
        port = free.getsockname()[1]
    written = (_PORT.search(files["eval.yaml"]) or [None, ""])[1]
    for name, text in files.items():
        (project.root / name).parent.mkdir(parents=True, exist_ok=True)
        (project.root / name).write_text(text.replace(written, str(port)) if written else text, encoding="utf-8")

    with ExitStack() as servers:
        for command in commands:
            if command[-1] == "&":
                servers.enter_context(running(command, project.root, port))
        outcomes = [project.keval(*command[1:]) for command in commands if command[:2] == ["keval", "run"]]

    assert outcomes
    assert [0] * len(outcomes) == [outcome.code for outcome in outcomes], outcomes[0].stderr


@pytest.mark.parametrize("name", RECIPES)
def test_an_agent_of_a_framework_uses_the_tools_and_tells_nothing(
    name: str, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not any(metadata.distributions(name=RECIPES[name])):
        pytest.skip("the frameworks of recipes are installed apart")
    serve_here(monkeypatch)
    files = files_of(FRAMEWORKS)
    project.write(**{file.replace(".", "_"): text for file, text in files.items()})

    outcome = project.keval("run", "eval.yaml", "--agent", name)

    assert 0 == outcome.code, outcome.stderr
    assert all(len(text.splitlines()) <= 30 for text in files.values())
    without, with_weather = sorted(project.lines("trials.jsonl"), key=lambda trial: str(trial["condition"]))
    assert ([], 1) == (without["transcript"]["tool_calls"], without["transcript"]["model_calls"])
    told = with_weather["transcript"]
    (call,) = told["tool_calls"]
    assert ("get_current_weather", "Oslo", 1) == (call["name"], call["arguments"]["city"], call["executions"])
    assert ("tap", "proxy", 2) == (told["tool_calls_by"], told["model_calls_by"], told["model_calls"])
    assert "You help with the weather." in with_weather["transcript"]["instructions"]
    assert told["usage"]["input_tokens"] > 1000
