"""A scripted model, real MCP servers and one trial at a time, for the tests of the adapter."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import pytest

from keval.plugin import McpServer
from tests.agents.scenes import Models, Outcome, Staged

if TYPE_CHECKING:
    pass

TOOLBOX = Path(__file__).parent / "servers" / "toolbox.py"
TOOLS = ("add", "die", "echo", "fail", "hang", "picture", "refuse", "where am i")


@attrs.frozen
class Toolbox:
    """A toolbox process over HTTP, and how to reach it."""

    transport: Any
    process: subprocess.Popen[str]
    port: int

    @classmethod
    def start(cls, transport: str, *arguments: str) -> Toolbox:
        command = [sys.executable, str(TOOLBOX), transport, *arguments]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, encoding="utf-8"
        )
        assert process.stdout is not None
        return cls(transport, process, int(process.stdout.readline()))

    def stop(self) -> None:
        self.process.kill()
        self.process.communicate()

    def server(self, **fields: Any) -> McpServer:
        path = "sse" if self.transport == "sse" else "mcp"
        url = f"http://127.0.0.1:{self.port}/{path}"
        return McpServer(**{"name": "toolbox", "transport": self.transport, "url": url, "tools": TOOLS, **fields})


@pytest.fixture(scope="session")
def models(runner: asyncio.Runner) -> Iterator[Models]:
    from keval_claude_code import ClaudeCode  # only the tests that are not skipped have it

    with Models.serve(ClaudeCode, runner) as models:
        yield models


@pytest.fixture
def staged(models: Models) -> Staged:
    """Put an adapter with these options in front of a model: `async with staged(script, max_turns=3) as scene`."""
    return models.stage


@pytest.fixture
def play(models: Models) -> Callable[..., Outcome]:
    """Run one trial: `play(script, *servers, max_turns=3, sample=..., context=...)`."""
    return models.play


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where trials make their directories."""
    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    return directory


@pytest.fixture(scope="session")
def toolbox() -> Iterator[Toolbox]:
    """A well-behaved server over HTTP, shared by the tests that do it no harm."""
    box = Toolbox.start("http")
    yield box
    box.stop()


@pytest.fixture
def start_toolbox(journal: Path) -> Iterator[Callable[..., Toolbox]]:
    """Start a server of one's own with these arguments; it writes to `journal`."""
    boxes: list[Toolbox] = []

    def start(*arguments: str) -> Toolbox:
        boxes.append(Toolbox.start(*arguments, "--journal", str(journal)))
        return boxes[-1]

    yield start
    for box in boxes:
        box.stop()


@pytest.fixture
def manage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, Any]], None]:
    """Run Claude Code with these settings besides the trial's own, as if an administrator managed the machine."""
    import claude_agent_sdk

    from keval_claude_code.connection import find_claude

    program = find_claude()

    def settle(settings: dict[str, Any]) -> None:
        directory = tmp_path / "managed"
        directory.mkdir()
        script = directory / "claude"
        command = shlex.join([program, "--settings", json.dumps(settings)])
        script.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
        script.chmod(0o755)
        monkeypatch.setattr(claude_agent_sdk, "__file__", str(directory / "__init__.py"))
        monkeypatch.setenv("PATH", str(directory), prepend=os.pathsep)

    return settle


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """Where a server of one's own notes its process id and the calls it runs."""
    return tmp_path / "journal.txt"


@pytest.fixture
def stdio(journal: Path) -> Callable[..., McpServer]:
    """Describe a server over stdio, with these extra arguments and fields."""

    def describe(*arguments: str, transport: str = "stdio", **fields: Any) -> McpServer:
        args = (str(TOOLBOX), transport, "--journal", str(journal), *arguments)
        given = {"name": "toolbox", "transport": "stdio", "command": sys.executable, "args": args, "tools": TOOLS}
        return McpServer(**{**given, **fields})

    return describe
