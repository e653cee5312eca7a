"""Real MCP servers from the registries, behind the tap and directly: what a client and three agents get of each.

    uv run python bench/real_servers.py [--folder DIR] [NAME…]

Each server is installed from npm or PyPI into a folder of its own below DIR, which is kept if it is given. Then

- the official SDK's `Client`, as it is by default, lists its tools, prompts and resources and makes the calls below,
  directly and through `keval tap`;
- the agents `openai`, `gadk` and `ms` make the same calls in a run with `tap: false` and in one behind the tap, asked
  by a scripted model.

Printed is, for each server, how many answers, and how many requests that the model got, are equal, and the first that
is not. What differs by itself from call to call, such as a time, is masked in both.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from keval_gateway import ChatCall, ChatReply, ChatRequest, wire_urls
from keval_gateway.app import build_app
from keval_loopback.serving import serve

KEVAL = (sys.executable, "-m", "keval")
OWN = Path(__file__).with_name("own_servers")
AGENTS = {
    "openai": {"type": "openai", "model": "openai/openai-agent"},
    "gadk": {"model": "google/gadk-agent"},
    "ms": {"model": "openai/ms-agent"},
}


@attrs.frozen
class Server:
    """A server `name`: the package that it is installed by, its command there, and what is called of its tools.

    `{folder}` stands for a folder that is made anew for each connection, `{port}` for the port of a server over HTTP,
    and `masked` is a regular expression for what differs by itself.
    """

    name: str
    package: str
    command: Sequence[str]
    calls: Sequence[tuple[str, Mapping[str, Any]]]
    masked: str = r"(?!)"
    url: str | None = None
    files: Mapping[str, str] = attrs.field(factory=dict)
    env: Mapping[str, str] = attrs.field(factory=dict)


def _npm(name: str, package: str, command: Sequence[str], *calls: tuple[str, Mapping[str, Any]], **more: Any) -> Server:
    return Server(name, f"npm:{package}", command, calls, **more)


def _pypi(
    name: str, package: str, command: Sequence[str], *calls: tuple[str, Mapping[str, Any]], **more: Any
) -> Server:
    return Server(name, f"pypi:{package}", command, calls, **more)


def _old_sdk(version: str, transport: str) -> Server:
    calls = (("add", {"a": 40}), ("greet", {"name": "Ada"}), ("fail", {"why": "no reason"}))
    port = ("{port}",) if transport == "sse" else ()
    url = "http://127.0.0.1:{port}/sse" if transport == "sse" else None
    return _pypi(
        f"sdk-{version}-{transport}",
        f"mcp=={version}{' pydantic<2.11' if version != '1.27.0' else ''}",
        ("python", str(OWN / "plain_sdk.py"), *port),
        *calls,
        url=url,
    )


THOUGHT = {"thought": "One.", "nextThoughtNeeded": True, "thoughtNumber": 1, "totalThoughts": 2}
PAGE = "data:text/html,<title>Page</title><h1>Heading</h1><p>Words"
SERVERS = (
    _npm("sequential-thinking", "@modelcontextprotocol/server-sequential-thinking", ("mcp-server-sequential-thinking",),
         ("sequentialthinking", THOUGHT), ("sequentialthinking", {**THOUGHT, "thoughtNumber": 2})),
    _npm("everything", "@modelcontextprotocol/server-everything", ("mcp-server-everything", "stdio"),
         ("echo", {"message": "hello"}), ("get-sum", {"a": 2, "b": 40}), ("get-tiny-image", {}),
         ("get-structured-content", {"location": "Chicago"}), ("get-annotated-message", {"messageType": "error"}),
         ("get-resource-links", {"count": 2}), ("trigger-long-running-operation", {"duration": 1, "steps": 2}),
         masked=r"\d\d?:\d\d:\d\d( [AP]M)?"),
    _npm("filesystem", "@modelcontextprotocol/server-filesystem", ("mcp-server-filesystem", "{folder}"),
         ("list_directory", {"path": "{folder}"}), ("read_text_file", {"path": "{folder}/a.txt"}),
         ("write_file", {"path": "{folder}/b.txt", "content": "new"}), ("read_text_file", {"path": "/etc/passwd"}),
         files={"a.txt": "First.\n"}),
    _npm("memory", "@modelcontextprotocol/server-memory", ("mcp-server-memory",),
         ("create_entities", {"entities": [{"name": "A", "entityType": "t", "observations": ["o"]}]}),
         ("read_graph", {}), env={"MEMORY_FILE_PATH": "{folder}/memory.json"}),
    _npm("budget-allocator", "@modelcontextprotocol/server-budget-allocator",
         ("mcp-budget-allocator-server", "--stdio"), ("get-budget-data", {})),
    _npm("desktop-commander", "@wonderwhy-er/desktop-commander", ("desktop-commander", "--no-onboarding"),
         ("read_file", {"path": "{folder}/files/a.txt"}), ("list_directory", {"path": "{folder}/files"}),
         files={"files/a.txt": "First.\n"}, env={"HOME": "{folder}"}, masked=r"\d+(\.\d+)? ?m?s\b"),
    _npm("playwright", "@playwright/mcp", ("playwright-mcp", "--headless", "--isolated", "--no-sandbox",
         "--executable-path", "/usr/bin/chromium"), ("browser_navigate", {"url": PAGE}), ("browser_snapshot", {}),
         masked=r"\d{4}-\d\d-\d\dT[\d:.-]+Z|page-[\w-]+"),
    _pypi("git", "mcp-server-git", ("mcp-server-git",), ("git_status", {"repo_path": "{folder}"}),
          ("git_log", {"repo_path": "{folder}"}), files={".git": ""}, masked=r"\b[0-9a-f]{40}\b|\d\d:\d\d:\d\d"),
    _pypi("time", "mcp-server-time", ("mcp-server-time", "--local-timezone", "UTC"),
          ("convert_time", {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}),
          ("get_current_time", {"timezone": "UTC"}), masked=r"T\d\d:\d\d:\d\d"),
    _pypi("sqlite", "mcp-server-sqlite mcp<2", ("mcp-server-sqlite", "--db-path", "{folder}/a.db"),
          ("create_table", {"query": "CREATE TABLE t (n INTEGER)"}),
          ("write_query", {"query": "INSERT INTO t VALUES (7)"}),
          ("read_query", {"query": "SELECT * FROM t"}), ("read_query", {"query": "DROP TABLE t"})),
    _pypi("excel", "excel-mcp-server", ("excel-mcp-server", "stdio"),
          ("create_workbook", {"filepath": "{folder}/a.xlsx"}),
          ("write_data_to_excel", {"filepath": "{folder}/a.xlsx", "sheet_name": "Sheet1", "data": [["a", 1]]}),
          ("read_data_from_excel", {"filepath": "{folder}/a.xlsx", "sheet_name": "Sheet1"})),
    _pypi("word", "office-word-mcp-server", ("word_mcp_server",),
          ("create_document", {"filename": "{folder}/a.docx", "title": "T"}),
          ("add_paragraph", {"filename": "{folder}/a.docx", "text": "Words."}),
          ("get_document_text", {"filename": "{folder}/a.docx"})),
    _pypi("motherduck", "mcp-server-motherduck", ("mcp-server-motherduck", "--db-path", ":memory:", "--read-write"),
          ("execute_query", {"sql": "SELECT 41 + 1 AS n"}), ("list_tables", {})),
    _pypi("markitdown", "markitdown-mcp", ("markitdown-mcp",),
          ("convert_to_markdown", {"uri": "data:text/html,<h1>Heading</h1>"})),
    *(_old_sdk(version, transport) for version in ("1.2.0", "1.10.0", "1.27.0") for transport in ("stdio", "sse")),
    _pypi("modern", "mcp>=2.3,<3", ("python", str(OWN / "modern_sdk.py"), "{port}"),
          ("add", {"a": 40}), ("count", {"to": 3}), url="http://127.0.0.1:{port}/mcp"),
)  # fmt: skip


def install(server: Server, folder: Path) -> Path:
    """Install a server, unless it is there, and return the folder of its commands."""
    registry, _, package = server.package.partition(":")
    home = folder / re.sub(r"\W+", "-", server.package)
    done = home / "installed"
    if registry == "npm":
        skipped = {"PUPPETEER_SKIP_DOWNLOAD": "1", "PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD": "1"}
        if not done.exists():
            home.mkdir(parents=True, exist_ok=True)
            _run(["npm", "install", "--silent", "--prefix", str(home), package], {**os.environ, **skipped})
            done.touch()
        return home / "node_modules" / ".bin"
    if not done.exists():
        _run(["uv", "venv", "-q", "--clear", "--python", sys.executable, str(home)])
        python = ["--python", str(home / "bin" / "python")]
        _run(["uv", "pip", "install", "-q", "--no-config", *python, *package.split(), "uvicorn"])
        done.touch()
    return home / "bin"


def _run(command: Sequence[str], env: Mapping[str, str] | None = None) -> None:
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}:\n{done.stderr[-2000:]}")


def write_files(server: Server, folder: Path) -> None:
    """Write what a server finds in its folder; `.git` is a repository with one commit."""
    for name, text in server.files.items():
        if name == ".git":
            for git in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "First."]):
                _run(["git", "-C", str(folder), "-c", "user.name=A", "-c", "user.email=a@b.example", *git])
        else:
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")


@attrs.frozen
class Installed:
    """A server with the folder of its commands; `filled` fills in what is known of one connection."""

    server: Server
    bin: Path

    @contextmanager
    def filled(self) -> Iterator[Filled]:
        """Make what one connection needs, and start the server if it is one over HTTP."""
        with tempfile.TemporaryDirectory(prefix="keval-real-") as folder:
            write_files(self.server, Path(folder))
            filled = Filled(self.server, self.bin, folder, _free_port())
            if filled.url is None:
                yield filled
                return
            command, *args = filled.command
            with subprocess.Popen([command, *args], env=filled.environ, stderr=subprocess.DEVNULL) as process:
                try:
                    _wait_for(filled.port)
                    yield filled
                finally:
                    process.kill()  # some wait for ever for clients that have gone


@attrs.frozen
class Filled:
    """What one connection with a server uses."""

    server: Server
    bin: Path
    folder: str
    port: int

    def filled_in(self, value: Any) -> Any:
        """Return data with what is known of the connection in place of its names."""
        return json.loads(json.dumps(value).replace("{folder}", self.folder).replace("{port}", str(self.port)))

    @property
    def command(self) -> list[str]:
        name, *args = self.filled_in([*self.server.command])
        return [str(self.bin / name), *args]

    @property
    def environ(self) -> dict[str, str]:
        known = {name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ}
        return {**known, **self.filled_in(dict(self.server.env))}

    @property
    def url(self) -> str | None:
        return self.server.url and str(self.filled_in(self.server.url))

    @property
    def calls(self) -> list[tuple[str, dict[str, Any]]]:
        return [(name, dict(arguments)) for name, arguments in self.filled_in([*map(list, self.server.calls)])]

    def masked(self, value: Any) -> Any:
        """Return what a server said, in JSON's types, without what differs from connection to connection."""
        text = json.dumps(value, sort_keys=True).replace(self.folder, "{folder}").replace(str(self.port), "{port}")
        return json.loads(re.sub(self.server.masked, "…", text))

    def context(self, *, tap: bool) -> dict[str, Any]:
        """Return the server as a context of a config."""
        if self.url is not None:
            kind = "sse" if self.url.endswith("/sse") else "http"
            return {"type": kind, "url": self.url, "tap": tap, "isolation": "trial"}
        command, *args = self.command
        about = {"command": command, "args": args, "env": self.environ, "cwd": self.folder}
        return {"type": "stdio", **about, "tap": tap, "isolation": "trial"}


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _wait_for(port: int) -> None:
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise SystemExit(f"nobody listens on {port}")


async def told(target: Any, filled: Filled, mode: Any = "auto") -> dict[str, Any]:
    """Return what a client of the SDK is told, by what it asked; `mode` is which revision it speaks."""
    found: dict[str, Any] = {}

    async def ask(what: str, asked: Any) -> None:
        try:
            result = await asyncio.wait_for(asked, 60)
            found[what] = result.model_dump(mode="json", by_alias=True, exclude_none=True)
        except Exception as error:  # noqa: BLE001 - compared with what the other side says
            found[what] = f"{type(error).__name__}: {error}"

    async with Client(target, mode=mode) as client:
        known = {"info": client.server_info, "capabilities": client.server_capabilities}
        found["begin"] = {name: value.model_dump(mode="json", by_alias=True) for name, value in known.items() if value}
        found["begin"] |= {"version": client.protocol_version, "instructions": client.instructions}
        await ask("tools/list", client.list_tools())
        for name in ("prompts", "resources", "resource_templates"):
            await ask(name, getattr(client, f"list_{name}")())
        for number, (name, arguments) in enumerate(filled.calls):
            await ask(f"{number} {name}", client.call_tool(name, arguments))
    return {what: filled.masked(value) for what, value in found.items()}


def directly(installed: Installed, version: str) -> dict[str, Any]:
    """Return what a client is told by the server itself, in the revision that the tap speaks with it."""
    with installed.filled() as filled:
        if filled.url is not None:
            target: Any = sse_client(filled.url) if filled.url.endswith("/sse") else filled.url
        else:
            command, *args = filled.command
            target = StdioServerParameters(command=command, args=args, env=filled.environ, cwd=filled.folder)
        return asyncio.run(told(target, filled, "auto" if version in MODERN_PROTOCOL_VERSIONS else "legacy"))


def tapped(installed: Installed) -> dict[str, Any]:
    """Return what a client is told by `keval tap`."""
    with installed.filled() as filled, tempfile.TemporaryDirectory() as folder:
        Path(folder, "eval.yaml").write_text(json.dumps(_served(filled, tap=True)))
        command = [*KEVAL, "tap", "eval.yaml", "--context", "real", "--port", "0"]
        with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                return asyncio.run(told(process.stdout.readline().strip(), filled))
            finally:
                process.terminate()


def _served(filled: Filled, *, tap: bool) -> dict[str, Any]:
    return {"contexts": {"real": filled.context(tap=tap)}, "conditions": {"real": {"contexts": ["real"]}}}


def requested(installed: Installed, *, tap: bool) -> dict[str, Any]:
    """Return what the model of each agent was asked in a run, by agent and turn."""
    asked: dict[str, Any] = {}
    with installed.filled() as filled, tempfile.TemporaryDirectory() as folder:

        def reply(request: ChatRequest) -> ChatReply:
            turn = sum(message.role == "tool" for message in request.messages)
            asked[f"{request.model} {turn}"] = json.loads(request.canonical())
            if turn < len(filled.calls):
                name, arguments = filled.calls[turn]
                # Frameworks may give a tool a prefix of its server.
                offered = next((each.name for each in request.tools if each.name.endswith(name)), name)
                return ChatReply(calls=(ChatCall(offered, arguments),))
            return ChatReply("Done.")

        config = {
            "dataset": {"path": "questions.jsonl"},
            "agents": AGENTS,
            **_served(filled, tap=tap),
            "metrics": ["basic/latency"],
            "execution": {"max_concurrent": 1},
        }
        Path(folder, "eval.yaml").write_text(json.dumps(config))
        Path(folder, "questions.jsonl").write_text('{"id": "q", "question": "What?"}\n')
        with _gateway(reply) as environ:
            done = subprocess.run(
                [*KEVAL, "run", "eval.yaml"], cwd=folder, env={**os.environ, **environ}, capture_output=True, text=True,
                check=False,
            )  # fmt: skip
        if done.returncode not in (0, 3):
            asked["run"] = done.stderr[-1500:]
        return {what: filled.masked(value) for what, value in asked.items()}


@contextmanager
def _gateway(reply: Any) -> Iterator[dict[str, str]]:
    """Run the scripted model in a thread, as the environment that leads to it."""
    begun, ended, bases = threading.Event(), threading.Event(), []

    async def run() -> None:
        async with serve(build_app(reply)) as base:
            bases.append(base)
            begun.set()
            await asyncio.to_thread(ended.wait)

    thread = threading.Thread(target=asyncio.run, args=(run(),))
    thread.start()
    begun.wait(30)
    urls = wire_urls(bases[0])
    try:
        yield {
            "OPENAI_BASE_URL": urls["openai-chat"],
            "OPENAI_API_KEY": "key-of-nobody",
            "GOOGLE_GEMINI_BASE_URL": urls["gemini"],
            "GOOGLE_API_KEY": "key-of-nobody",
        }
    finally:
        ended.set()
        thread.join()


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Return what is not equal, as text."""
    return [
        f"{what}:\n    directly {json.dumps(one.get(what))[:600]}\n    tapped   {json.dumps(other.get(what))[:600]}"
        for what in {**one, **other}
        if one.get(what) != other.get(what)
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path)
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="keval-servers-"))
    print(f"{'server':24} {'client':>9} {'model':>9}   (answers and requests that are equal; wanted: all)")
    try:
        for server in SERVERS:
            if given.names and server.name not in given.names:
                continue
            installed = Installed(server, install(server, folder.absolute()))
            try:
                behind = tapped(installed)
            except Exception as error:  # noqa: BLE001 - the others are tried
                print(f"{server.name:24} cannot be reached through the tap: {error!r:.300}", flush=True)
                continue
            answers = directly(installed, behind["begin"]["version"]), behind
            requests = requested(installed, tap=False), requested(installed, tap=True)
            unlike = [differences(*answers), differences(*requests)]
            cells = [
                f"{len({**one, **other}) - len(wrong)}/{len({**one, **other})}"
                for (one, other), wrong in zip((answers, requests), unlike, strict=True)
            ]
            print(f"{server.name:24} {cells[0]:>9} {cells[1]:>9}", flush=True)
            for difference in (*unlike[0], *unlike[1]):
                print("  " + difference, flush=True)
    finally:
        if given.folder is None:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
