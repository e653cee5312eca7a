"""The MCP servers that the user names: by a command, a URL, or the file of a client, as contexts of a config."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import attrs

from keval.cli.messages import redactor
from keval.config.load import read_evaluation
from keval.config.secrets import learn_config
from keval.config.source import Source
from keval.config.variables import filling
from keval.errors import PreflightError, suggestion
from keval.records.servers import ToolListing
from keval.seams import registry
from keval_start.local_servers import PLACES, started_by
from keval_start.variables import Variables
from keval_start.workplace import Workplace

_RUNNERS = (
    *("python", "python3", "uv", "uvx", "pipx", "run", "tool", "npx", "npm", "exec", "bunx", "bun", "node", "deno"),
    *("docker", "podman", "sh", "bash", "env", "cmd"),
)
"""What starts a server, and says nothing about it."""
_SETTING = re.compile(r"([A-Za-z_]\w*)(?:=(.*))?", re.DOTALL)
_HEADER = re.compile(r"([\w-]+):\s*(\S.*)", re.DOTALL)
_AFFIXES = re.compile(r"^(?:mcp[-_]server|server|mcp)[-_]|[-_](?:mcp[-_]server|server[-_]mcp|mcp|server)$")


@attrs.frozen
class Server:
    """An MCP server: its label, and the options of the context that it becomes. `notes` say what was left out."""

    label: str
    options: Mapping[str, Any]
    notes: Sequence[str] = ()

    @property
    def target(self) -> str:
        """The command or the URL, as the config has it."""
        options = self.options
        return options["url"] if "url" in options else shlex.join([options["command"], *options.get("args", ())])


@attrs.frozen
class ListedServer:
    """A server that was started, with what it offers."""

    server: Server
    listings: Sequence[ToolListing]

    @property
    def tools(self) -> list[str]:
        """The names of its tools."""
        return [tool for listing in self.listings for tool in listing.tools]

    @property
    def may_write(self) -> list[str]:
        """The names of the tools that do not say that they only read."""
        every = [tool for listing in self.listings for tool in listing.definitions]
        return [tool["name"] for tool in every if (tool.get("annotations") or {}).get("readOnlyHint") is not True]

    def folders(self, place: Path) -> list[str]:
        """Return the folders that its command names, for a config in the folder `place`.

        Agents have to know them: tools of such servers ask for paths.
        """
        words = self.server.options.get("args", ())
        base = place / self.server.options.get("cwd", "/")
        return [word for word in words if re.fullmatch(r"[\w./-]+", word) and (base / word).is_dir()]

    @property
    def is_shared(self) -> bool:
        """Whether trials share the server."""
        return all(listing.sharing is not None and listing.sharing.shared for listing in self.listings)


def named_server(text: str, workplace: Workplace, variables: Variables) -> Server:
    """Return the server that a command or a URL names.

    A command may be a file that a program runs, with settings such as `KEY=value` before it, as in a shell. Raises
    ValueError if it is neither.
    """
    if re.match(r"https?://", text):
        host = urlsplit(text).hostname or "server"
        label = next((part for part in host.split(".") if part not in ("mcp", "www", "api")), host)
        label = label_of("local" if host[0].isdigit() else label)
        kind = "sse" if urlsplit(text).path.rstrip("/").endswith("/sse") else "http"
        return Server(label, {"type": kind, "url": variables.url(label, text)})
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ValueError(f"no command: {error}; quote it as for a shell") from error
    settings = [*takewhile(lambda word: "=" in word and _SETTING.fullmatch(word), words)]
    words = words[len(settings) :]
    if not words:
        raise ValueError("no command; write one such as `uvx mcp-server-time`, or a URL")
    words = [*started_by(words[0], workplace.here), *words]
    label = label_of(_telling_word(words))
    options: dict[str, Any] = {"type": "stdio", "command": words[0]}
    if words[1:]:
        options["args"] = variables.arguments(label, words[1:])
    if any(workplace.has(word) for word in words):
        options["cwd"] = workplace.written(Path())
    return with_more(Server(label, options), settings, variables)


def with_more(server: Server, more: Sequence[str], variables: Variables) -> Server:
    """Return a server with more in its environment (`NAME=VALUE` or `NAME`), or headers for its URL (`NAME: VALUE`).

    What may be secret becomes a variable. Raises ValueError for what such a server does not take.
    """
    options, remote = dict(server.options), "url" in server.options
    for text in more:
        if (found := (_HEADER if remote else _SETTING).fullmatch(text)) is None:
            takes = "a URL takes headers as NAME: VALUE" if remote else "a command takes NAME=VALUE or NAME"
            raise ValueError(f"{takes}, not {re.split('[= ]', text)[0]!r}")  # the rest may be secret
        name, value = found[1], found[2]
        kept, key = (variables.header, "headers") if remote else (variables.setting, "env")
        given = kept(server.label, name, f"${{{name}}}" if value is None else value)
        options[key] = {**options.get(key, {}), name: given}
    return attrs.evolve(server, options=options)


def _telling_word(words: Sequence[str]) -> str:
    """Return the word of a command that says which server it starts, without its folder, scope, version and suffix."""
    valued = ("--with", "--from", "--python")
    free = [word for before, word in zip(("", *words), words, strict=False) if before not in valued]
    told = [word for word in free if word[:1] != "-" and "=" not in word and Path(word).stem not in _RUNNERS]
    # Options of docker have values of their own, and the image comes after them.
    word = (told[-1] if words[0] in ("docker", "podman") and told else next(iter(told), words[0])).rstrip("/")
    # An npm package may begin with `@`, and has its version behind another one.
    name = re.sub(r"(?<=.)@.*|:.*|==.*|\.(py|js|mjs|ts|sh|exe)$", "", word.rpartition("/")[2])
    return _AFFIXES.sub("", name) or name


def label_of(name: str) -> str:
    """Return a label for something of this name."""
    return re.sub(r"[^\w.-]+", "_", name).strip("_.-") or "it"


def with_own_labels(servers: Iterable[Server]) -> tuple[Server, ...]:
    """Number servers whose labels are the same."""
    found: dict[str, Server] = {}
    for server in servers:
        label, number = server.label, 2
        while label in found:
            label, number = f"{server.label}_{number}", number + 1
        found[label] = attrs.evolve(server, label=label)
    return tuple(found.values())


async def listed_servers(
    servers: Sequence[Server], workplace: Workplace, variables: Variables
) -> tuple[ListedServer, ...]:
    """Start every server once and return what it lists; of several with one label, the others get numbers.

    Raises:
        PluginError: keval-mcp is not installed.
        PreflightError: servers do not come up; each with its command and the end of its standard error.
    """
    registry.find("keval.proxies", "servers")  # whose package lists tools
    from keval_mcp.served_context import read_tool_listings  # only who names servers needs it

    servers = with_own_labels(servers)
    contexts = {server.label: dict(server.options) for server in servers}
    conditions = {"baseline": {}, "with_servers": {"contexts": [*contexts]}}
    with filling(variables.known):
        # It is not in a file, so that errors have no places.
        evaluation = read_evaluation(Source("", workplace.folder, {"contexts": contexts, "conditions": conditions}))
        learn_config(redactor(), evaluation)
        # Exceptions are collected, as every server that does not come up is to be told of.
        found = await asyncio.gather(
            *(read_tool_listings(evaluation, [server.label], redactor()) for server in servers), return_exceptions=True
        )
    problems: list[str] = []
    listed: list[ListedServer] = []
    for server, outcome in zip(servers, found, strict=True):
        if isinstance(outcome, PreflightError):
            problems += [f"{server.target}: {problem}" for problem in outcome.problems]
        elif isinstance(outcome, BaseException):
            raise outcome
        else:
            listed.append(ListedServer(server, [each for context in outcome for each in context.tool_listings]))
    if problems:
        raise PreflightError(problems)
    return tuple(listed)


# Texts are matched first, and kept, as an address in one has two slashes, too.
_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_LAST_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])')
_REFERENCE = re.compile(r"\$\{([^}]*)\}")
_VARIABLE = re.compile(r"(?:env:)?([A-Za-z_]\w*)(:-.*)?")
_TRANSPORTS = {"stdio": "stdio", "sse": "sse", "http": "http", "streamable-http": "http", "streamableHttp": "http"}
_TAKEN = {"type", "transport", "command", "args", "env", "cwd", "url", "serverUrl", "headers"}
_HARMLESS = {"disabled", "description", "autoApprove", "alwaysAllow", "gallery", "version", "dev"}


def read_target(text: str, workplace: Workplace, variables: Variables) -> list[Server]:
    """Return the servers that a command, a URL or a client's file names. Raises ValueError."""
    if text.endswith(".json") and (workplace.here / text).is_file():
        return read_servers(Path(text), workplace, variables)
    return [named_server(text, workplace, variables)]


def read_servers(path: Path, workplace: Workplace, variables: Variables, only: Sequence[str] = ()) -> list[Server]:
    """Read the servers of a client's file, or `only` those of these names; those that it disables are left out.

    The file may have comments, and commas after the last entry. Servers under `projects`, as `~/.claude.json` has them,
    are those of the folder in which the user stands.

    Raises:
        ValueError: what is wrong with the file.
    """
    path = workplace.here / path
    try:
        text = path.read_text(encoding="utf-8-sig")
        data = json.loads(_LAST_COMMA.sub(_kept, _COMMENT.sub(_kept, text)))
    except (OSError, ValueError) as error:
        raise ValueError(f"it cannot be read as JSON: {getattr(error, 'strerror', None) or error}") from error
    found = dict(_sections(data, workplace.here))
    if not found:
        told = "it has no servers under `mcpServers` (Claude Code, Cursor) or `servers` (VS Code)"
        raise ValueError(f"{told}; name a file such as {', '.join(PLACES)}, or a server by --server")
    for name in only:
        if name not in found:
            raise ValueError(f"it has no server {name!r}{suggestion(name, found, 'servers')}")
    found = {name: entry for name, entry in found.items() if not only or name in only}
    wrong = [name for name, entry in found.items() if not isinstance(entry, dict)]
    if wrong:
        raise ValueError(f"the servers {', '.join(wrong)} are no objects with a command or a URL; correct them")
    home = path.parent.parent if path.parent.name in (".vscode", ".cursor") else path.parent
    # A file in the user's home is for every project: a client starts its servers in the one that is open.
    project = workplace.here if home == Path.home() else home
    return [
        _Entry(name, entry, project, workplace, variables).server()
        for name, entry in found.items()
        if not entry.get("disabled")
    ]


def _kept(match: re.Match[str]) -> str:
    return match[1] or " "


def _sections(data: Any, here: Path) -> Iterator[tuple[str, Any]]:
    """Yield the servers of a file by name, the most general first: a later one of the same name counts."""
    if not isinstance(data, dict):
        return
    project = (data.get("projects") or {}).get(str(here)) if isinstance(data.get("projects"), dict) else None
    for holder in (data.get("mcp"), data, project):
        for key in ("servers", "mcpServers"):
            if isinstance(holder, dict) and isinstance(servers := holder.get(key), dict):
                yield from servers.items()


@attrs.frozen
class _Entry:
    """One server of a client's file. `project` is the folder in which the client would start it."""

    name: str
    data: Mapping[str, Any]
    project: Path
    workplace: Workplace
    variables: Variables

    def server(self) -> Server:
        """Return the server as a context. Raises ValueError."""
        label = label_of(self.name)
        notes = [f"{self.name}: `{key}` was left out" for key in self.data if key not in _TAKEN | _HARMLESS]
        url = self.data.get("url", self.data.get("serverUrl"))
        told = self.data.get("type", self.data.get("transport"))
        if told is not None and told not in _TRANSPORTS:
            raise ValueError(
                f"the server {self.name!r} is of type {told!r}; keval connects by {', '.join(_TRANSPORTS)}"
            )
        if isinstance(url, str):
            url = self._translated(url)
            kind = _TRANSPORTS[told] if told else "sse" if url.rstrip("/").endswith("/sse") else "http"
            options: dict[str, Any] = {"type": kind, "url": self.variables.url(label, url)}
            if headers := self._texts("headers"):
                options["headers"] = {
                    name: self.variables.header(label, name, value) for name, value in headers.items()
                }
            return Server(label, options, notes)
        if not isinstance(command := self.data.get("command"), str) or not command:
            raise ValueError(f"the server {self.name!r} has neither `command` nor `url`; correct it, or leave it out")
        words = self.data.get("args", [])
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise ValueError(f"`args` of the server {self.name!r} is no list of texts; correct it")
        options = {"type": "stdio", "command": self._translated(command)}
        if args := self.variables.arguments(label, [self._translated(word) for word in words]):
            options["args"] = args
        settings = {name: self.variables.setting(label, name, value) for name, value in self._texts("env").items()}
        if settings:
            options["env"] = settings
        cwd = self._translated(str(self.data.get("cwd", ".")))
        options["cwd"] = self.workplace.written(self.project / cwd)
        return Server(label, options, notes)

    def _texts(self, key: str) -> dict[str, str]:
        """Return a mapping of texts, with references translated; clients take numbers for texts, too."""
        found = self.data.get(key) or {}
        if not isinstance(found, dict):
            raise ValueError(f"`{key}` of the server {self.name!r} is no object; correct it")
        return {name: self._translated(str(value)) for name, value in found.items() if value is not None}

    def _translated(self, text: str) -> str:
        """Replace the client's references by keval's. Raises ValueError for one that keval has nothing for."""
        folders: Mapping[str, str] = {
            "workspaceFolder": ".",
            "CLAUDE_PROJECT_DIR": ".",
            "userHome": "${HOME}",
        }

        def reference(match: re.Match[str]) -> str:
            if match[1] in folders:
                return folders[match[1]]
            if match[1].startswith("input:"):
                name = re.sub(r"\W", "_", match[1].removeprefix("input:")).upper()
                return f"${{{name}}}"
            if found := _VARIABLE.fullmatch(match[1]):
                return f"${{{found[1]}{found[2] or ''}}}"
            raise ValueError(
                f"the server {self.name!r} has {match[0]}, which only its client can fill in; write a value"
            )

        return _REFERENCE.sub(reference, text)
