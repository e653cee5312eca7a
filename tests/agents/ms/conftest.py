"""A scripted model, real MCP servers and one trial at a time, for the tests of the adapter."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest

from keval.plugin import McpServer
from keval_ms import Ms
from tests.agents.scenes import Models, Outcome, Staged
from tests.processes import Listening
from tests.stdio_server import ENVIRONMENT

TOOLBOX, SHELF = "tests.agents.ms.servers.toolbox", "tests.agents.ms.servers.shelf"
TOOLS = ("add", "die", "echo", "fail", "hang", "picture", "where am i")


@attrs.define
class Toolbox:
    """A toolbox process over HTTP, and how to reach it."""

    arguments: tuple[str, ...]
    _process: Listening

    @classmethod
    def start(cls, *arguments: str) -> Toolbox:
        return cls(arguments, Listening.start(TOOLBOX, *arguments))

    def stop(self) -> None:
        self._process.stop()

    async def restart(self) -> None:
        await asyncio.to_thread(self.stop)
        port = self._process.port
        self._process = await asyncio.to_thread(Listening.start, TOOLBOX, *self.arguments, port=port)

    def server(self, **fields: Any) -> McpServer:
        transport = "sse" if self.arguments[0] == "sse" else "http"
        path = "sse" if transport == "sse" else "mcp"
        url = f"http://127.0.0.1:{self._process.port}/{path}"
        return McpServer(**{"name": "toolbox", "transport": transport, "url": url, "tools": TOOLS, **fields})


@pytest.fixture(scope="session")
def models(runner: asyncio.Runner) -> Iterator[Models]:
    with Models.serve(Ms, runner) as models:
        yield models


@pytest.fixture
def staged(models: Models) -> Staged:
    """Put an adapter with these options in front of a model: `async with staged(script, max_turns=3) as scene`."""
    return models.stage


@pytest.fixture
def play(models: Models) -> Callable[..., Outcome]:
    """Run one trial: `play(script, *servers, max_turns=3, sample=..., context=...)`."""
    return models.play


@contextmanager
def _toolbox(*arguments: str) -> Iterator[Toolbox]:
    box = Toolbox.start(*arguments)
    try:
        yield box
    finally:
        box.stop()


@pytest.fixture(scope="session")
def toolbox() -> Iterator[Toolbox]:
    """A well-behaved server over HTTP, shared by the tests that do it no harm."""
    with _toolbox("http") as box:
        yield box


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
def journal(tmp_path: Path) -> Path:
    """Where a server of one's own notes its process id and the calls it runs."""
    return tmp_path / "journal.txt"


@pytest.fixture
def stdio(journal: Path) -> Callable[..., McpServer]:
    """Describe a server over stdio, with these extra arguments and fields."""

    def describe(*arguments: str, transport: str = "stdio", **fields: Any) -> McpServer:
        args = ("-m", SHELF, transport, "--journal", str(journal), *arguments)
        given = {"name": "toolbox", "transport": "stdio", "command": sys.executable, "args": args, "tools": TOOLS}
        env = {**ENVIRONMENT, **fields.pop("env", {})}
        return McpServer(**{**given, "env": env, **fields})

    return describe
