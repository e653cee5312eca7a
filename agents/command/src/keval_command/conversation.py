"""One conversation: a program is run for each message of the user, and the answer read out of what it wrote."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import attrs
import jmespath
import orjson
from jmespath.exceptions import JMESPathError
from jmespath.parser import ParsedResult

from keval.plugin import TrialError
from keval_programs import Confinement, Placeholders, Process, environment, placeholders_in, running, whole_path

if TYPE_CHECKING:
    from keval_command import Command

Events: TypeAlias = Literal["jsonl"]

_SHOWN = 500
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
        told, options = self._placeholders, self._options
        filled = [told.fill(whole_path(argument, told.config_folder), question) for argument in command]
        env = environment(told.folder.home, {name: told.fill(text) for name, text in options.env.items()})
        process = Process(Path(filled[0]).name, filled, env, told.folder.work, self._confinement)
        asks = "question" in placeholders_in(command)
        async with running(process, told.context.builder):
            # Beside reading: a program may write much before it reads all of its input.
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
            # UTF-8 cannot hold a lone surrogate, which a dataset in JSON may have.
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


def expression(field: str, text: str) -> ParsedResult:
    """Compile a JMESPath expression. Raises ValueError: it does not parse."""
    try:
        return jmespath.compile(text)
    except JMESPathError as error:
        told = " ".join(str(error).split())
        raise ValueError(f"'{field}' must be a JMESPath expression: {told}") from error


@attrs.frozen
class Output:
    """What a program wrote on its standard output; `events` says that each line is JSON of its own."""

    text: str
    events: Events | None = None

    def answer(self, wanted: ParsedResult | None) -> str:
        """Return the answer: all of the text, or the last text that `wanted` finds.

        Raises:
            TrialError: of kind `bad_output`; it is no JSON, or `wanted` finds no text in it.
        """
        if wanted is None:
            return self.text.strip()
        found = [value for value in self._found(wanted) if isinstance(value, str)]
        if not found:
            raise self._lacks(f"a text at {wanted.expression!r}")
        return found[-1].strip()

    def session(self, wanted: ParsedResult) -> str:
        """Return the session's id, which `wanted` finds first. Raises TrialError of kind `bad_output`."""
        for value in self._found(wanted):
            if isinstance(value, str | int) and not isinstance(value, bool):
                return str(value)
        raise self._lacks(f"a session's id at {wanted.expression!r}")

    def _found(self, wanted: ParsedResult) -> Iterator[Any]:
        for value in self._read():
            try:
                found = wanted.search(value)
            except JMESPathError:  # a function that does not take this value, in one event of many
                continue
            if found is not None:
                yield found

    def _read(self) -> Iterator[Any]:
        for text in self.text.splitlines() if self.events else [self.text]:
            try:
                yield orjson.loads(text)
            except orjson.JSONDecodeError:
                # Some programs write lines of their own among the events.
                if not self.events:
                    raise self._lacks("JSON") from None

    def _lacks(self, what: str) -> TrialError:
        end = self.text.strip()[-_SHOWN:]
        return TrialError(f"the program's output has not {what}; it ends:\n{end}", kind="bad_output")
