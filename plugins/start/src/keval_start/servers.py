"""The MCP servers that the user names: by a command, a URL, or the file of a client, as contexts of a config."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import attrs

from keval.cli.messages import redactor
from keval.config.load import read_evaluation
from keval.config.secrets import learn_config
from keval.config.source import Source
from keval.config.variables import filling
from keval.errors import PreflightError
from keval.records.servers import ToolListing
from keval.seams import registry
from keval_start.variables import Variables
from keval_start.workplace import Workplace

_RUNNERS = (
    *("python", "python3", "uv", "uvx", "pipx", "run", "tool", "npx", "npm", "exec", "bunx", "bun", "node", "deno"),
    *("docker", "podman", "sh", "bash", "env", "cmd"),
)
"""What starts a server, and says nothing about it."""
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
    """Return the server that a command or a URL names. Raises ValueError if it is neither."""
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
    if not words:
        raise ValueError("no command; write one such as `uvx mcp-server-time`, or a URL")
    label = label_of(_telling_word(words))
    options: dict[str, Any] = {"type": "stdio", "command": words[0]}
    if words[1:]:
        options["args"] = variables.arguments(label, words[1:])
    if any(workplace.has(word) for word in words):
        options["cwd"] = workplace.written(Path())
    return Server(label, options)


def _telling_word(words: Sequence[str]) -> str:
    """Return the word of a command that says which server it starts, without its folder, scope, version and suffix."""
    told = [word for word in words if word[:1] != "-" and "=" not in word and Path(word).stem not in _RUNNERS]
    word = (told[-1] if words[0] in ("docker", "podman") and told else next(iter(told), words[0])).rstrip("/")
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
    """Start every server once and return what it lists.

    Raises:
        PluginError: keval-mcp is not installed.
        PreflightError: servers do not come up; each with its command and the end of its standard error.
    """
    registry.find("keval.proxies", "servers")  # whose package lists tools
    from keval_mcp.served_context import read_tool_listings  # only who names servers needs it

    contexts = {server.label: dict(server.options) for server in servers}
    conditions = {"baseline": {}, "with_servers": {"contexts": [*contexts]}}
    with filling(variables.known):
        # It is not in a file, so that errors have no places.
        evaluation = read_evaluation(Source("", workplace.folder, {"contexts": contexts, "conditions": conditions}))
        learn_config(redactor(), evaluation)
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
