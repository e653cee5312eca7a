"""The client's side of the protocol: what an agent tells keval, and asks of it."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import attrs
from acp import schema
from acp.exceptions import RequestError

from keval.plugin import Context, TrialError, is_blank
from keval_acp.files import confined_folder, read_text, write_text
from keval_acp.terminals import Terminals
from keval_acp.tool_use import ToolUse, ToolUses
from keval_programs import TrialFolder


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

    async def read_text_file(
        self, session_id: str, path: str, line: int | None = None, limit: int | None = None, **meta: Any
    ) -> schema.ReadTextFileResponse:
        """Read a file in the trial's folder."""
        self._check_files("fs/read_text_file")
        text = await asyncio.to_thread(read_text, self.folder, path, line, limit)
        return schema.ReadTextFileResponse(content=text)

    async def write_text_file(
        self, session_id: str, path: str, content: str, **meta: Any
    ) -> schema.WriteTextFileResponse:
        """Write a file in the trial's folder."""
        self._check_files("fs/write_text_file")
        await asyncio.to_thread(write_text, self.folder, path, content)
        return schema.WriteTextFileResponse()

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

    def _check_files(self, method: str) -> None:
        # keval is outside of the sandbox, and the agent could put a link where keval is just about to open a file.
        if self.terminals.confinement is not None:
            raise RequestError.method_not_found(method)

    def _see(self, told: schema.ToolCall | schema.ToolCallUpdate) -> ToolUse:
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
