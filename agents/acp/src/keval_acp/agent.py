"""The `acp` agent: its options, and what its trials share."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Literal

import attrs
from attrs.validators import ge

import keval_programs as programs
from keval import Sample, Transcript
from keval.plugin import API_WIRES, Api, Context, Conventions, Conversation, Model, Volatile, run_conversation
from keval_programs import PLACEHOLDERS

_KNOWN = PLACEHOLDERS - {"question", "session"}
"""Questions and the session's id pass by the protocol."""


@attrs.define
class Acp:
    """Runs every trial in a coding agent of its own, which is asked by the Agent Client Protocol.

    `command` starts the agent: a list, or one text as in a shell. It, `env` and `meta` may have placeholders, and
    `files` are Jinja templates by path. `permissions` are the calls that the agent is allowed when it asks: all, none,
    or those of the kinds or titles that are listed; a tool of the condition is always allowed. `login` is the way of
    logging in that is taken first, and `mode` and `settings` are chosen in each session, all by the ids that the agent
    tells; `meta` is what `session/new` has under `_meta`. `shows_server_instructions` says that the agent shows its
    model the instructions of MCP servers itself, so that the system prompt is without them. `api` is the protocol that
    the agent speaks with its model, and with any of `models` that it asks beside that. `reads` says what the agent
    finds in its folder by itself. `max_processes` bounds how many run at once. An argument that is the path of a file
    in `folder`, which is that of the config, is passed as its whole path.
    """

    requests_by_proxy: ClassVar[bool] = True
    usage_by_proxy: ClassVar[bool] = True
    volatile: ClassVar[tuple[Volatile, ...]] = programs.OF_PROGRAMS
    flag_option: ClassVar[str] = "command"

    command: str | tuple[str, ...]
    model: Model | None = None
    models: tuple[Model, ...] = ()
    api: Api = "chat"
    env: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    files: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    permissions: Literal["allow", "deny"] | tuple[str, ...] = "allow"
    shows_server_instructions: bool = False
    login: str | None = None
    mode: str | None = None
    settings: Mapping[str, str] = attrs.field(factory=dict)
    meta: Mapping[str, Any] = attrs.field(factory=dict, repr=False)
    reads: programs.FolderConventions = attrs.field(factory=programs.FolderConventions)
    max_processes: int = attrs.field(factory=lambda: 2 * (os.cpu_count() or 1), validator=ge(1))
    folder: Path = Path()
    words: tuple[str, ...] = attrs.field(init=False, repr=False, eq=False)
    """The command."""
    templates: Mapping[str, programs.TextTemplate] = attrs.field(init=False, repr=False, eq=False)
    """The files."""
    used: frozenset[str] = attrs.field(init=False, repr=False, eq=False)
    """The names of the placeholders and variables in all options."""

    def __attrs_post_init__(self) -> None:
        self.templates = {
            path: programs.TextTemplate.parse("files", text, self.model) for path, text in self.files.items()
        }
        self.words = programs.words("command", self.command)
        # Of files, their paths may have placeholders.
        texts = {"command": self.command, "env": self.env, "files": [*self.files], "meta": self.meta}
        used = set[str]()
        for field, value in texts.items():
            programs.check_placeholders(field, _texts(value), self.model, _KNOWN)
            used |= programs.placeholders_in(_texts(value))
        self.used = frozenset(used).union(*(file.names for file in self.templates.values()))
        programs.check_models(self.model, self.models, API_WIRES[self.api])

    def max_concurrency(self) -> int:
        """How many trials may run at once; see `keval.plugin.ConcurrencyLimited`."""
        return self.max_processes

    def conventions(self) -> Conventions:
        """What the program finds in its folder; see `keval.plugin.WorksInFolder`."""
        return self.reads.declared()

    async def prepare(self) -> None:
        """Start the agent once, and have it open a session.

        Raises:
            PreflightError: there is no such program, it does not speak the protocol, wants a login, or does not know
                the mode or a setting.
        """
        await asyncio.to_thread(import_module, "keval_acp.session")
        from keval_acp.session import try_out

        await try_out(self)

    async def run(self, sample: Sample, context: Context) -> Transcript:
        """Hold one conversation; see `keval.plugin.Agent`."""
        return await run_conversation(self, sample, context)

    def open(self, context: Context) -> AbstractAsyncContextManager[Conversation]:
        """Open a session; see `keval.plugin.ConversationalAgent`."""
        # Importing the SDK takes half a second, which checking a config need not pay.
        from keval_acp.session import open_conversation

        return open_conversation(self, context)


def _texts(value: object) -> Iterator[str]:
    """Yield every text in a structure of mappings and lists."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
