"""What a program is told of its trial: placeholders in its command and environment, and the files that it needs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import attrs
from jinja2 import Environment, StrictUndefined, Template, TemplateError, meta

from keval.errors import TrialError, suggestion
from keval.execute.shielding import in_thread
from keval.records.models import Model, ModelAccess, Wire
from keval.records.servers import McpServer
from keval.seams.contexts import Context
from keval_programs.folder import TrialFolder
from keval_programs.tree import LedOutError, Tree

_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([a-z_]+)\}")

_OF_MODEL = frozenset({"model", "model_base_url", "model_key"})

PLACEHOLDERS = frozenset(
    {
        *("question", "system_prompt", "system_prompt_file", "history_file", "mcp_config", "workspace", "home"),
        *("folder", "session", "seed"),
        *_OF_MODEL,
    }
)
"""The names that may stand in braces; two braces stand for one."""

_OF_PROMPT = frozenset({"system_prompt", "system_prompt_file"})
_OF_SERVERS = frozenset({"mcp_config", "servers"})
_OF_HISTORY = frozenset({"history_file", "history"})

# Files of any format are made, which the escapes of HTML would spoil.
_ENVIRONMENT = Environment(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True)  # noqa: S701


def placeholders_in(texts: Iterable[str]) -> set[str]:
    """Return the names of the placeholders in texts."""
    return {found[1] for text in texts for found in _PLACEHOLDER.finditer(text) if found[1]}


def check_placeholders(field: str, texts: Iterable[str], model: object, known: Iterable[str] = PLACEHOLDERS) -> None:
    """Check the placeholders in an option; `model` is the agent's, which some of them need.

    Raises ValueError: one is unknown, or needs a model and there is none.
    """
    names = sorted(known)
    for name in sorted(placeholders_in(texts)):
        if name not in names:
            hint = suggestion(name, names, "placeholders")
            raise ValueError(f"'{field}' must have known placeholders only, got {{{name}}}{hint} ({{{{ writes a brace)")
        if name in _OF_MODEL and model is None:
            raise ValueError(f"'{field}' must not have {{{name}}} without a model; give the agent `model:`")


def check_models(model: Model | None, models: Sequence[Model], wire: Wire) -> None:
    """Check the options for a program's models: `models` are those that it asks beside `model`.

    Raises:
        ValueError: there is no model to be beside, or one is named twice.
        PreflightError: one is known to speak another protocol than that of the program.
    """
    if models and model is None:
        raise ValueError("'models' must come with `model`, beside which the program asks them")
    for each in (asked := [each for each in (model, *models) if each is not None]):
        if asked.count(each) > 1:
            raise ValueError(f"'models' must have models beside `model` once each, got {each}")
        # The core adds the endpoint before the first trial: the moment to find that a model does not speak the API.
        if each.endpoint is not None:
            each.reach(wire)


@attrs.frozen
class TextTemplate:
    """A Jinja template of a file's content; `names` are the variables in it."""

    template: Template
    names: frozenset[str]

    @classmethod
    def parse(cls, field: str, text: str, model: object) -> TextTemplate:
        """Compile a template. Raises ValueError: it does not parse, or has an unknown variable."""
        try:
            names = frozenset(meta.find_undeclared_variables(_ENVIRONMENT.parse(text)))
            template = _ENVIRONMENT.from_string(text)
        except TemplateError as error:
            raise ValueError(f"'{field}' must be a Jinja template: {error}") from error
        known = PLACEHOLDERS - {"question"} | {"servers", "history", "has_workspace"}
        for name in sorted(names - known):
            hint = suggestion(name, sorted(known), "variables")
            raise ValueError(f"'{field}' must have known variables only, got {name!r}{hint}")
        if names & _OF_MODEL and model is None:
            raise ValueError(
                f"'{field}' must not have {min(names & _OF_MODEL)} without a model; give the agent `model:`"
            )
        return cls(template, names)


@attrs.define
class Placeholders:
    """What placeholders stand for in one trial; the files that some of them name are written when they are needed.

    `used` are the names of all that the agent's options have, those of its files included: what no option hands over is
    said in front of the first message, or fails the trial.
    """

    folder: TrialFolder
    context: Context
    access: ModelAccess | None
    config_folder: Path
    used: frozenset[str]
    session: str = ""
    _files: dict[str, str] = attrs.field(factory=dict, init=False)

    def fill(self, text: str, question: str = "") -> str:
        """Return a text with its placeholders filled in."""

        def value(found: re.Match[str]) -> str:
            return self._value(found[1], question) if found[1] else found[0][0]

        return _PLACEHOLDER.sub(value, text)

    async def write_files(self, files: Mapping[str, TextTemplate]) -> None:
        """Write the files of the agent's options, by path: `~/` is the trial's home, and others are in its workspace.

        Raises:
            TrialError: of kind `bad_file`; a template cannot be rendered, or a link leads the path elsewhere.
        """
        for name, file in files.items():
            try:
                content = file.template.render({each: self._variable(each) for each in file.names})
            except TemplateError as error:
                raise TrialError(f"the file {name} cannot be rendered: {error}", kind="bad_file") from error
            base = self.folder.home if name.startswith("~/") else self.folder.work
            await in_thread(partial(_write, name, base, self.fill(name.removeprefix("~/")), content))
        if self.context.workspace is not None and not all(name.startswith("~/") for name in files):
            await self.context.workspace.begin()  # what the adapter wrote is no change of the agent's

    def check(self) -> None:
        """Raise TrialError if the agent's options hand over neither servers nor history that the trial has."""
        if self.context.servers and not self.used & _OF_SERVERS:
            raise TrialError(f"the trial has MCP servers: {SERVERS_REFUSED}", kind="servers_unsupported")
        if self.context.history and not self.used & _OF_HISTORY:
            problem = (
                "the sample has earlier messages, and the agent's options do not hand them over; write {history_file}"
                " where the program takes a file with them"
            )
            raise TrialError(problem, kind="history_unsupported")

    def first_message(self, text: str) -> str:
        """Return the first message of the user; the system prompt stands before it where no option hands it over."""
        prompt = "" if self.used & _OF_PROMPT else self.context.instructions
        return f"{prompt}\n\n{text}" if prompt else text

    def _written(self, name: str, content: Any) -> str:
        if name not in self._files:
            write = self.folder.write if isinstance(content, str) else self.folder.write_json
            self._files[name] = str(write(name, content))
        return self._files[name]

    def _value(self, name: str, question: str) -> str:
        match name:
            case "question":
                return question.encode("utf-8", "replace").decode()  # an argument has no lone surrogates
            case "system_prompt_file":
                return self._written("system_prompt.md", self.context.instructions)
            case "history_file":
                return self._written("history.json", self._history)
            case "mcp_config":
                return self._written("mcp.json", mcp_config(self.context.servers))
        values = {
            "system_prompt": self.context.instructions,
            "workspace": str(self.folder.work),
            "home": str(self.folder.home),
            "folder": str(self.config_folder),
            "session": self.session,
            "seed": str(self.context.seed),
        }
        if (access := self.access) is not None:  # without one, none of its names was let through
            values |= {"model": access.name, "model_base_url": access.base_url, "model_key": access.api_key}
        return values[name]

    def _variable(self, name: str) -> Any:
        if name == "servers":
            return [{"name": server.name, **_entry(server)} for server in self.context.servers]
        if name == "has_workspace":
            return self.context.workspace is not None
        return self._history if name == "history" else self._value(name, "")

    @property
    def _history(self) -> list[dict[str, str]]:
        return [{"role": message.role, "content": message.text} for message in self.context.history]


def _write(name: str, base: Path, path: str, content: str) -> None:
    try:
        with Tree.at(base) as tree:
            tree.write(path, content.encode("utf-8", "replace"))
    except LedOutError as error:
        raise TrialError(f"the file {name} would be written outside of {base}", kind="bad_file") from error
    except OSError as error:
        raise TrialError(f"the file {name} cannot be written: {error.strerror}", kind="bad_file") from error


SERVERS_REFUSED = (
    "the agent's options do not hand them over; write {mcp_config} where the program"
    " takes a file with them, or name `servers` in one of its `files`"
)
"""What is wrong where a program cannot know of its servers."""


def mcp_config(servers: Sequence[McpServer]) -> dict[str, Any]:
    """Return the content of an `mcp.json`: `mcpServers` is what Claude Code and Cursor read, and `servers` VS Code."""
    entries = {server.name: _entry(server) for server in servers}
    return {"mcpServers": entries, "servers": entries}


def _entry(server: McpServer) -> dict[str, Any]:
    if server.transport != "stdio":
        return {"type": server.transport, "url": server.url, "headers": dict(server.headers)}
    entry = {"type": "stdio", "command": server.command, "args": list(server.args), "env": dict(server.env)}
    return entry if server.cwd is None else {**entry, "cwd": server.cwd}
