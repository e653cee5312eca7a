"""The `command` agent: its options, checked, and its conversations."""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import ClassVar

import attrs
from attrs.validators import ge
from jmespath.parser import ParsedResult

from keval import Sample, Transcript
from keval.plugin import API_WIRES, Api, Context, Conventions, Conversation, Model, Volatile, run_conversation
from keval_command.conversation import CommandConversation, Events, expression
from keval_programs import (
    OF_PROGRAMS,
    SERVERS_REFUSED,
    FolderConventions,
    Placeholders,
    TextTemplate,
    check_models,
    check_placeholders,
    confinement,
    find_program,
    inside,
    needed,
    open_folder,
    placeholders_in,
    whole_path,
    words,
)


def _processes() -> int:
    return 4 * (os.cpu_count() or 1)


@attrs.frozen
class Session:
    """How a later message of the user is asked in the same conversation: by a command of its own.

    `command` is written as that of the agent. `{session}` in it is what `id`, a JMESPath expression, finds in the
    output of the first command. Without `id`, keval draws a UUID, which the first command gets as `{session}`, too.
    """

    command: str | tuple[str, ...]
    id: str | None = None


@attrs.define
class Command:
    """Runs a program for every message of the user, in a folder, a home and an environment of the trial's own.

    `command` is a list, or one text as in a shell. The question goes where `{question}` stands in `command`, or else to
    standard input. The answer is the standard output, or the text that the JMESPath expression `answer` finds in its
    JSON; with `events: jsonl` each line is JSON, and the last text found counts. `env` are the variables that the
    program gets beside those that any program needs, and `files` are written for it: paths, and Jinja templates of
    their content. `api` is the protocol that the program speaks with its model, and with any of `models` that it asks
    beside that. `reads` says what the program finds in its folder by itself. `max_processes` bounds how many run at
    once. An argument that is the path of a file in `folder`, which is that of the config, is passed as its whole path.
    """

    requests_by_proxy: ClassVar[bool] = True
    usage_by_proxy: ClassVar[bool] = True
    volatile: ClassVar[tuple[Volatile, ...]] = OF_PROGRAMS
    flag_option: ClassVar[str] = "command"

    command: str | tuple[str, ...]
    model: Model | None = None
    models: tuple[Model, ...] = ()
    api: Api = "chat"
    answer: str | None = None
    events: Events | None = None
    session: Session | None = None
    env: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    files: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    reads: FolderConventions = attrs.field(factory=FolderConventions)
    max_processes: int = attrs.field(factory=_processes, validator=ge(1))
    folder: Path = Path()
    first: tuple[str, ...] = attrs.field(init=False, repr=False, eq=False)
    """The command."""
    again: tuple[str, ...] = attrs.field(default=(), init=False, repr=False, eq=False)
    """The command of later messages, if there is one."""
    templates: Mapping[str, TextTemplate] = attrs.field(init=False, repr=False, eq=False)
    used: frozenset[str] = attrs.field(init=False, repr=False, eq=False)
    """The names of the placeholders and variables in all options."""
    answer_path: ParsedResult | None = attrs.field(default=None, init=False, repr=False, eq=False)
    session_path: ParsedResult | None = attrs.field(default=None, init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        self.first = words("command", self.command)
        check_placeholders("command", self.first, self.model)
        check_placeholders("env", self.env.values(), self.model)
        check_placeholders("files", self.files, self.model)
        if self.session is not None:
            self.again = words("session", self.session.command)
            check_placeholders("session", self.again, self.model)
            if self.session.id is not None:
                self.session_path = expression("session", self.session.id)
        if self.events is not None and self.answer is None:
            raise ValueError("'events' must come with `answer`, the JMESPath expression of the answer in an event")
        self.templates = {path: TextTemplate.parse("files", text, self.model) for path, text in self.files.items()}
        if self.answer is not None:
            self.answer_path = expression("answer", self.answer)
        used = frozenset(placeholders_in([*self.first, *self.env.values(), *self.files]))
        self.used = used.union(*(file.names for file in self.templates.values()))
        check_models(self.model, self.models, API_WIRES[self.api])

    def max_concurrency(self) -> int:
        """How many trials may run at once; see `keval.plugin.ConcurrencyLimited`."""
        return self.max_processes

    def own_files(self) -> Iterable[Path]:
        """Return the files beside the config that the commands name; see `keval.plugin.MadeOfFiles`."""
        folder = self.folder.absolute()
        return [Path(path) for word in (*self.first, *self.again) if (path := whole_path(word, folder)) != word]

    def servers_refusal(self) -> str | None:
        """Say why the agent cannot be given MCP servers; see `keval.plugin.RefusesServers`."""
        return None if self.used & {"mcp_config", "servers"} else SERVERS_REFUSED

    def conventions(self) -> Conventions:
        """What the program finds in its folder; see `keval.plugin.WorksInFolder`."""
        return self.reads.declared()

    async def prepare(self) -> None:
        """Find the programs. Raises PreflightError: one is not found."""
        folder = self.folder.absolute()
        for command in filter(None, (self.first, self.again)):
            find_program(whole_path(command[0], folder), folder)

    async def run(self, sample: Sample, context: Context) -> Transcript:
        """Hold one conversation; see `keval.plugin.Agent`."""
        return await run_conversation(self, sample, context)

    @asynccontextmanager
    async def open(self, context: Context) -> AsyncIterator[Conversation]:
        """Make the trial's folder; see `keval.plugin.ConversationalAgent`."""
        context, own_folder = inside(context), self.folder.absolute()
        async with open_folder(context) as folder:
            placeholders = Placeholders(
                folder=folder,
                context=context,
                access=self.model.access(API_WIRES[self.api], context.model_headers) if self.model else None,
                config_folder=own_folder,
                used=self.used,
                # Another one for each attempt, but the same when the run is played again.
                session=str(uuid.uuid5(uuid.NAMESPACE_OID, f"{context.trial}/{context.attempt}")),
            )
            placeholders.check()
            await placeholders.write_files(self.templates)
            context.builder.leave_calls_to_tap(context.servers)
            url = placeholders.access.base_url if placeholders.access is not None else None
            needs = [need for command in (self.first, self.again) if command for need in needed(command, own_folder)]
            yield CommandConversation(self, placeholders, confinement(context, folder, url, needs))
