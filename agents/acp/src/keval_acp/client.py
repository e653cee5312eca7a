"""The client's side of the protocol: what an agent tells keval, and asks of it, also by terminals."""

from __future__ import annotations

import asyncio
import codecs
import os
import stat
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any, Literal

import attrs
from acp import schema
from acp.exceptions import RequestError

from keval.plugin import Context, TranscriptBuilder, TrialError, is_blank
from keval_acp.tool_use import ToolUse, ToolUses
from keval_programs import Confinement, LedOutError, Process, Tree, TrialFolder, running


@attrs.define
class Client:
    """Serves one session, and reports to the context's builder what the agent tells.

    A text is complete when a message with another id, a new tool call or the end of the turn follows. `permissions` are
    those of the config: calls of all kinds, of none, or of these kinds or titles.
    """

    context: Context
    folder: TrialFolder
    terminals: Terminals
    permissions: Literal["allow", "deny"] | tuple[str, ...]
    uses: ToolUses
    _text: list[str] = attrs.field(factory=list, init=False)
    _message: str | None = attrs.field(default=None, init=False)
    _has_spoken: bool = attrs.field(default=False, init=False)

    def end_turn(self, *, truncated: bool = False) -> bool:
        """Report what is left of a turn; returns whether the agent has said something since the last call."""
        self._say(truncated=truncated)
        self.uses.end_turn()
        spoken, self._has_spoken = self._has_spoken, False
        return spoken

    async def session_update(self, session_id: str, update: object, **meta: Any) -> None:
        """Report a piece of a message, what a tool call does, or a plan."""
        match update:
            case schema.AgentMessageChunk(content=schema.TextContentBlock(text=text), message_id=id) if text:
                if id != self._message:
                    self._say()
                # A text is reported at its end, before which the tap may record calls; so the builder is told of its
                # beginning.
                if not self._text:
                    self.context.builder.writes()
                self._message = id
                self._text.append(text)
                if self.context.streams:
                    self.context.builder.streamed(text)
            case schema.ToolCallStart() | schema.ToolCallProgress():
                self._see(update)
            case schema.AgentPlanUpdate(entries=entries):
                plan = [entry.model_dump(mode="json", exclude_none=True) for entry in entries]
                self.context.builder.called("plan", {"entries": plan}, "plan", own=True)
                self.context.builder.returned("", id="plan")

    async def request_permission(
        self, session_id: str, tool_call: schema.ToolCallUpdate, options: list[schema.PermissionOption], **meta: Any
    ) -> schema.RequestPermissionResponse:
        """Choose the option by which the call is allowed or rejected, this time if the agent leaves the choice."""
        use = self._see(tool_call)
        if isinstance(self.permissions, str):
            is_allowed = self.permissions == "allow"
        else:
            is_allowed = use.kind in self.permissions or use.title in self.permissions
        verdict = "allow" if is_allowed or self.uses.of_condition(use) is not None else "reject"
        fitting: dict[str, str] = {each.kind: each.option_id for each in options if each.kind.startswith(verdict)}
        chosen = fitting.get(f"{verdict}_once") or next(iter(fitting.values()), None)
        if chosen is None:
            return schema.RequestPermissionResponse(outcome=schema.DeniedOutcome(outcome="cancelled"))
        return schema.RequestPermissionResponse(outcome=schema.AllowedOutcome(outcome="selected", option_id=chosen))

    async def create_terminal(
        self,
        *,
        session_id: str,
        command: str,
        args: list[str] | None = None,
        cwd: str | None = None,
        env: list[schema.EnvVariable] | None = None,
        output_byte_limit: int | None = None,
        **meta: Any,
    ) -> schema.CreateTerminalResponse:
        """Start a command in the trial's folder."""
        folder = confined_folder(self.folder, cwd)
        named = {each.name: each.value for each in env or ()}
        try:
            terminal = await self.terminals.create(command, args, named, folder, output_byte_limit)
        except TrialError as error:
            raise RequestError.internal_error({"details": str(error)}) from error
        return schema.CreateTerminalResponse(terminal_id=terminal)

    async def terminal_output(self, session_id: str, terminal_id: str, **meta: Any) -> schema.TerminalOutputResponse:
        """Tell what a command has written, and how it ended if it has."""
        terminal = self.terminals.get(terminal_id)
        status = None if terminal.process.is_running else _exit(await terminal.wait())
        return schema.TerminalOutputResponse(output=terminal.output, truncated=terminal.truncated, exit_status=status)

    async def wait_for_terminal_exit(
        self, session_id: str, terminal_id: str, **meta: Any
    ) -> schema.WaitForTerminalExitResponse:
        """Wait until a command has ended."""
        status = _exit(await self.terminals.get(terminal_id).wait())
        return schema.WaitForTerminalExitResponse(exit_code=status.exit_code, signal=status.signal)

    async def kill_terminal(self, session_id: str, terminal_id: str, **meta: Any) -> None:
        """End a command; what it wrote can still be read."""
        await self.terminals.get(terminal_id).close()

    async def release_terminal(self, session_id: str, terminal_id: str, **meta: Any) -> None:
        """End a command, and forget it."""
        await self.terminals.release(terminal_id)

    def _see(self, told: schema.ToolCall | schema.ToolCallUpdate) -> ToolUse:
        # Only a new call ends a text: the end of an earlier one may be told in the middle of it.
        if self.uses.is_new(told.tool_call_id):
            self._say()
        return self.uses.see(told)

    def _say(self, *, truncated: bool = False) -> None:
        text = "".join(self._text)
        self._text = []
        if not is_blank(text):
            self._has_spoken = True
        self.context.builder.said(text, truncated=truncated)


def _exit(code: int) -> schema.TerminalExitStatus:
    return (
        schema.TerminalExitStatus(exit_code=code) if code >= 0 else schema.TerminalExitStatus(signal=f"signal {-code}")
    )


_MOST_BYTES = 1_000_000
"""What is kept of a command's output, if the agent sets no lower limit."""
_MOST_KEPT = 64 * 2**20
"""What is kept of the outputs of all terminals that were released; what later ones wrote is forgotten."""
_MOST_AT_ONCE, _MOST = 32, 1000
"""Terminals that an agent may have, of which each is a process of keval's and has a sandbox of its own."""

_PIECE = 65_536


@attrs.define(eq=False)
class Terminal:
    """A command that was started, and the end of what it wrote: of at most `limit` bytes."""

    process: Process
    limit: int
    stack: AsyncExitStack
    truncated: bool = False
    _written: bytearray = attrs.field(factory=bytearray, init=False)
    _reading: asyncio.Task[None] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._reading = asyncio.create_task(self._read())

    @property
    def output(self) -> str:
        """What it wrote; a character that the limit cuts is left out."""
        written = bytes(self._written)
        if self.truncated:  # a character has at most three bytes after its first
            written = written[:3].lstrip(bytes(range(0x80, 0xC0))) + written[3:]
        # An incremental decoder leaves out a character of which only the beginning was written so far.
        return codecs.getincrementaldecoder("utf-8")("replace").decode(written)

    async def wait(self) -> int:
        """Wait until it has ended and all is read; returns its exit code."""
        code = await self.process.wait()
        await asyncio.wait({self._reading}, timeout=1.0)  # a process that it left behind may write on
        return code

    async def close(self) -> None:
        """End it, and all that it started. That it used more than its sandbox allows, its process says."""
        with suppress(TrialError):
            await self.stack.aclose()
        self._reading.cancel()
        await asyncio.wait({self._reading})

    async def _read(self) -> None:
        while piece := await self.process.stdout.read(_PIECE):
            self._written += piece
            if len(self._written) > self.limit:
                self.truncated = True
                del self._written[: len(self._written) - self.limit]


@attrs.define
class Terminals:
    """The terminals of one trial by id, which run where its agent does. All are closed at its end."""

    env: Mapping[str, str]
    confinement: Confinement | None = None
    _terminals: dict[str, Terminal] = attrs.field(factory=dict, init=False)
    _outputs: dict[str, str] = attrs.field(factory=dict, init=False)
    _limits: list[TrialError | None] = attrs.field(factory=list, init=False)
    _creating: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False)

    async def create(
        self, command: str, args: Sequence[str] | None, env: Mapping[str, str], cwd: Path, limit: int | None
    ) -> str:
        """Start a command, and return the terminal's id; without arguments it is a line for the shell.

        Raises:
            TrialError: it cannot be started, or there are too many.
        """
        # Requests that come at once are counted, and get their ids, one after the other.
        async with self._creating:
            if len(self._terminals) >= _MOST_AT_ONCE or len(self._terminals) + len(self._outputs) >= _MOST:
                told = f"an agent may have {_MOST_AT_ONCE} terminals at once, and {_MOST:,} in a trial; release some"
                raise TrialError(told, kind="terminals")
            # One pipe has both outputs, in the order in which they were written.
            script = ('exec "$@" 2>&1', "sh", command, *args) if args else (f"exec 2>&1\n{command}",)
            name = f"terminal-{len(self._terminals) + len(self._outputs) + 1}"
            process = Process(
                name=command,
                command=("/bin/sh", "-c", *script),
                env=self.env,
                cwd=cwd,
                confinement=self.confinement,
                inside=env,
            )
            stack = AsyncExitStack()
            await stack.enter_async_context(running(process, TranscriptBuilder()))
            # The protocol has no way to write to a terminal, and a program that reads must not wait for ever.
            process.stdin.close()
            self._terminals[name] = Terminal(process, _MOST_BYTES if limit is None else min(limit, _MOST_BYTES), stack)
            return name

    def get(self, id: str) -> Terminal:
        """Return a terminal. Raises RequestError: there is none, or it was released."""
        if id not in self._terminals:
            raise RequestError.invalid_params({"terminalId": id, "details": "there is no such terminal"})
        return self._terminals[id]

    async def release(self, id: str) -> None:
        """Close a terminal; its output is kept for the transcript. Raises RequestError: there is none."""
        terminal = self.get(id)
        await terminal.close()
        kept = sum(map(len, self._outputs.values()))
        self._outputs[id] = terminal.output[-_MOST_KEPT + kept :] if kept < _MOST_KEPT else ""
        self._limits.append(terminal.process.limit)
        del self._terminals[id]

    def output(self, id: str) -> str:
        """Return what a terminal wrote, also one that was released; empty if there was none."""
        return self._terminals[id].output if id in self._terminals else self._outputs.get(id, "")

    async def close(self) -> None:
        """Close all. Raises TrialError: one used more than its sandbox allows."""
        await asyncio.gather(*(terminal.close() for terminal in self._terminals.values()))
        for limit in (*self._limits, *(terminal.process.limit for terminal in self._terminals.values())):
            if limit is not None:
                raise limit


def confined_folder(folder: TrialFolder, path: str | None) -> Path:
    """Return a folder to run a command in.

    Symbolic links are followed in the trial's folder, and not out of it. Raises RequestError: there is no such one.
    """
    whole = os.path.join(folder.work, path or "")
    for base in (folder.work, folder.home, folder.own):
        if whole == str(base) or whole.startswith(f"{base}/"):
            break
    else:
        raise _refusal(whole, f"it is outside of {folder.work}, the folder of this trial")
    try:
        with Tree.at(base) as tree:
            within = whole.removeprefix(str(base)).strip("/")
            with tree.followed(within) as found:
                if not stat.S_ISDIR(found.status.st_mode):
                    raise NotADirectoryError(0, "it is no folder")
            return Path(tree.path or "", tree.led(within))
    except LedOutError as error:
        raise _refusal(whole, f"it is outside of {folder.work}, the folder of this trial") from error
    except (OSError, ValueError) as error:  # a NUL in the path
        raise _refusal(whole, getattr(error, "strerror", None) or str(error)) from error


def _refusal(path: str, why: str) -> RequestError:
    return RequestError.invalid_params({"path": path, "details": f"{path}: {why}"})
