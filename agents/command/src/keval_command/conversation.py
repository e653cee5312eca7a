"""One conversation: a program is run for each message of the user."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from keval.plugin import TrialError
from keval_command.output import Output
from keval_programs import Confinement, Placeholders, Process, environment, placeholders_in, running, whole_path

if TYPE_CHECKING:
    from keval_command import Command

_MOST_BYTES = 64 * 1024 * 1024
_CHUNK = 65536


@attrs.define
class CommandConversation:
    """A conversation with a program that is started anew for each message."""

    _options: Command
    _placeholders: Placeholders
    _confinement: Confinement | None
    _asked: int = attrs.field(default=0, init=False)

    async def ask(self, text: str) -> None:
        """Run the program for one message of the user, and report its answer.

        Raises:
            TrialError: the program cannot be started, fails, or writes no answer; or it takes no second message.
        """
        options, self._asked = self._options, self._asked + 1
        builder = self._placeholders.context.builder
        with builder.turn(text):
            if self._asked == 1:
                output = await self._run(options.first, self._placeholders.first_message(text))
                if options.session_path is not None:
                    self._placeholders.session = output.session(options.session_path)
            elif options.again:
                output = await self._run(options.again, text)
            else:
                problem = (
                    "the sample has several messages, and the agent's options do not say how the program resumes a"
                    " session; give it `session:` with the command of later messages"
                )
                raise TrialError(problem, kind="turns_unsupported")
            builder.said(output.answer(options.answer_path))

    async def _run(self, command: Sequence[str], question: str) -> Output:
        """Run a command to its end, and return its output."""
        told, options = self._placeholders, self._options
        filled = [told.fill(whole_path(argument, told.config_folder), question) for argument in command]
        env = environment(told.folder.home, {name: told.fill(text) for name, text in options.env.items()})
        process = Process(Path(filled[0]).name, filled, env, told.folder.work, self._confinement)
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
        return Output(output, options.events)


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
