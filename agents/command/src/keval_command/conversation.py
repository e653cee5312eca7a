"""One conversation: a program is run for each message of the user."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs
from jmespath.parser import ParsedResult

from keval.plugin import TrialError
from keval_command.output import Events, Output
from keval_programs import (
    Confinement,
    Placeholders,
    Process,
    TextTemplate,
    environment,
    placeholders_in,
    running,
    whole_path,
)

_MOST_BYTES = 64 * 1024 * 1024
_CHUNK = 65536


@attrs.frozen
class Program:
    """What all trials share: the commands, and how they are read; see the options of `Command`.

    `again` is the command of later messages, if there is one, and `session` finds the session's id in the output of the
    first.
    """

    command: Sequence[str]
    again: Sequence[str]
    session: ParsedResult | None
    answer: ParsedResult | None
    events: Events | None
    env: Mapping[str, str]
    folder: Path
    files: Mapping[str, TextTemplate]
    used: frozenset[str]


@attrs.define
class CommandConversation:
    """A conversation with a program that is started anew for each message."""

    _program: Program
    _placeholders: Placeholders
    _confinement: Confinement | None
    _asked: int = attrs.field(default=0, init=False)

    async def ask(self, text: str) -> None:
        """Run the program for one message of the user, and report its answer.

        Raises:
            TrialError: the program cannot be started, fails, or writes no answer; or it takes no second message.
        """
        program, self._asked = self._program, self._asked + 1
        builder = self._placeholders.context.builder
        with builder.turn(text):
            if self._asked == 1:
                output = await self._run(program.command, self._placeholders.first_message(text))
                if program.session is not None:
                    self._placeholders.session = output.session(program.session)
            elif program.again:
                output = await self._run(program.again, text)
            else:
                problem = (
                    "the sample has several messages, and the agent's options do not say how the program resumes a"
                    " session; give it `session:` with the command of later messages"
                )
                raise TrialError(problem, kind="turns_unsupported")
            builder.said(output.answer(program.answer))

    async def _run(self, command: Sequence[str], question: str) -> Output:
        """Run a command to its end, and return its output."""
        told, program = self._placeholders, self._program
        filled = [told.fill(whole_path(argument, program.folder), question) for argument in command]
        env = environment(told.folder.home, {name: told.fill(text) for name, text in program.env.items()})
        process = Process(
            name=Path(filled[0]).name,
            command=filled,
            env=env,
            cwd=told.folder.work,
            confinement=self._confinement,
        )
        asks = "question" in placeholders_in(command)
        async with running(process, told.context.builder):
            feeding = asyncio.create_task(_feed(process, "" if asks else question))
            try:
                output = await _read(process)
                code = await process.wait()
            finally:
                feeding.cancel()
                await asyncio.wait({feeding})
            if code:
                raise process.death(output)
        return Output(output, program.events)


async def _feed(process: Process, text: str) -> None:
    """Write what the program reads, as far as it does."""
    try:
        if text:
            process.stdin.write(text.encode("utf-8", "replace"))
            await process.stdin.drain()
        process.stdin.close()
    except ConnectionError:  # it does not read all; whether it failed, its exit code says
        return


async def _read(process: Process) -> str:
    """Return all that the program writes. Raises TrialError of kind `output_too_large`."""
    chunks: list[bytes] = []
    size = 0
    while chunk := await process.stdout.read(_CHUNK):
        size += len(chunk)
        if size > _MOST_BYTES:
            problem = f"{process.name} wrote more than {_MOST_BYTES:,} bytes; let it write only its answer"
            raise TrialError(problem, kind="output_too_large")
        chunks.append(chunk)
    return b"".join(chunks).decode("utf-8", "replace")
