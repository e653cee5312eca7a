"""Tool calls as an agent tells them in pieces, and which of them are calls of the condition's MCP tools."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import unified_diff
from typing import Any, TypeAlias

import attrs
from acp import schema

from keval import ToolCall
from keval.plugin import McpServer, TranscriptBuilder

_Content: TypeAlias = schema.ContentToolCallContent | schema.FileEditToolCallContent | schema.TerminalToolCallContent
_MOST_SHOWN = 1_000_000
"""Characters of a result after which no more of it is shown."""
_MOST_PAIRS = 1_000_000
"""Pairs of lines of an edit above which these are not compared, as keval would stand still meanwhile."""
_LONGEST_TITLE = 500
"""Characters of a title that may name a tool; no name is as long."""


@attrs.define
class ToolUse:
    """One call. `content` is what the agent shows of it; `began` is by the clock of `time.monotonic`."""

    id: str
    began: float = attrs.field(factory=time.monotonic)
    title: str = ""
    kind: str = "other"
    status: str = "pending"
    raw_input: Any = None
    raw_output: Any = None
    content: Sequence[_Content] = ()

    def update(self, told: schema.ToolCall | schema.ToolCallUpdate) -> None:
        """Take over what the agent tells anew."""
        for name in ("title", "kind", "status", "raw_input", "raw_output", "content"):
            value = getattr(told, name)
            if value not in (None, {}, []):
                setattr(self, name, value)

    @property
    def has_ended(self) -> bool:
        """Whether it has a result."""
        return self.status in ("completed", "failed")

    @property
    def arguments(self) -> Mapping[str, Any] | None:
        """The tool's arguments, if the agent tells them; some wrap those of MCP tools."""
        given = self.raw_input
        if isinstance(given, Mapping) and isinstance(given.get("arguments"), Mapping):
            given = given["arguments"]
        return given if isinstance(given, Mapping) else None

    def result(self, terminal_output: Callable[[str], str]) -> str:
        """Return what the agent shows of the result as text; `terminal_output` is told a terminal's id."""
        pieces, size = list[str](), 0
        for item in self.content:
            if size > _MOST_SHOWN:  # each item may name the same terminal
                pieces.append("[what follows is left out]")
                break
            pieces.append(_shown(item, terminal_output))
            size += len(pieces[-1])
        shown = "\n".join(pieces)
        if shown or self.raw_output is None:
            return shown
        return self.raw_output if isinstance(self.raw_output, str) else json.dumps(self.raw_output, ensure_ascii=False)


def _shown(item: _Content, output: Callable[[str], str]) -> str:
    match item:
        case schema.ContentToolCallContent(content=schema.TextContentBlock(text=text)):
            return text
        case schema.ContentToolCallContent(content=block):
            return f"[{block.type}]"
        case schema.FileEditToolCallContent(path=path, old_text=old, new_text=new):
            before, after = (old or "").splitlines(), new.splitlines()
            if len(before) * len(after) > _MOST_PAIRS:
                return f"[{path}: an edit of {len(before):,} lines to {len(after):,}]"
            return "\n".join(unified_diff(before, after, path, path, lineterm=""))
        case schema.TerminalToolCallContent(terminal_id=id):
            return output(id)


@attrs.define
class ToolUses:
    """The calls of one trial, each reported to the builder when it has ended.

    Calls of the condition's MCP tools are left to the tap. Agents name them in different ways, so what the tap recorded
    decides: a call is of an MCP tool if the tap has one of the name that its title has, or else of the same arguments.
    One whose title names an MCP tool, and that failed without the tap, is a call that no server got.
    """

    builder: TranscriptBuilder
    servers: Sequence[McpServer]
    terminal_output: Callable[[str], str]
    _open: dict[str, ToolUse] = attrs.field(factory=dict, init=False)
    _ended: set[str] = attrs.field(factory=set, init=False)
    # By the `id()` of the tap's records, which are kept to the end of the trial.
    _claims: dict[int, ToolUse | None] = attrs.field(factory=dict, init=False)

    def is_new(self, id: str) -> bool:
        """Return whether nothing was told of a call so far."""
        return id not in self._open and id not in self._ended

    def see(self, told: schema.ToolCall | schema.ToolCallUpdate) -> ToolUse:
        """Take over what the agent tells of a call, and report the call if it has ended."""
        use = self._open.get(told.tool_call_id) or ToolUse(told.tool_call_id)
        use.update(told)
        if use.id not in self._ended:
            self._open[use.id] = use
            if use.has_ended:
                self._end(use)
        return use

    def end_turn(self) -> None:
        """Report the calls that have not ended."""
        for use in list(self._open.values()):
            self._end(use)

    def of_condition(self, use: ToolUse) -> tuple[McpServer, str] | None:
        """Return the server and the name of the MCP tool that a call's title names, or the input beside arguments."""
        given = use.raw_input if isinstance(use.raw_input, Mapping) else {}
        title = use.title if len(use.title) <= _LONGEST_TITLE else ""
        for server in self.servers:
            for tool in server.tools:
                if (given.get("server"), given.get("tool")) == (server.name, tool):
                    return server, tool
                if re.fullmatch(_title(server.name, tool), title):
                    return server, tool
        return None

    def _end(self, use: ToolUse) -> None:
        self._open.pop(use.id)
        self._ended.add(use.id)
        named = self.of_condition(use)
        if named is None:
            if not self._claim_by_arguments(use):
                self._report(use)
        # Calls of a server without a tap are unknown.
        elif not self._claim_by_name(use, named[1]) and named[0].log is not None:
            if use.status == "failed":
                self.builder.called(named[1], use.arguments or {}, use.id)
                self.builder.returned(error=use.result(self.terminal_output), id=use.id, sent=False)
            elif use.has_ended:
                self._report(use)

    def _report(self, use: ToolUse) -> None:
        """Report a call of the agent's own."""
        arguments = {"title": use.title} if use.arguments is None else use.arguments
        self.builder.called(use.kind, arguments, use.id, own=True, ago=time.monotonic() - use.began)
        if use.has_ended:
            result = use.result(self.terminal_output)
            failed = use.status == "failed"
            self.builder.returned(None if failed else result, error=result if failed else None, id=use.id)

    def _claim_by_arguments(self, use: ToolUse) -> bool:
        """Return whether the tap recorded a call of these arguments that no other call has claimed."""
        for record in self._records():
            if id(record) not in self._claims and record.arguments and dict(record.arguments) == use.arguments:
                self._claims[id(record)] = use
                return True
        return False

    def _claim_by_name(self, use: ToolUse, tool: str) -> bool:
        """Return whether the tap recorded a call of this tool; one that claimed it by its arguments gives it back."""
        records = [record for record in self._records() if record.name == tool]
        open_to_claim = [record for record in records if self._claims.get(id(record), use) is not None]
        if not open_to_claim:
            return False
        best = min(
            open_to_claim, key=lambda record: (id(record) in self._claims, dict(record.arguments) != use.arguments)
        )
        mistaken = self._claims.get(id(best))
        self._claims[id(best)] = None
        if mistaken is not None:
            self._report(mistaken)
        return True

    def _records(self) -> Iterator[ToolCall]:
        for server in self.servers:
            yield from server.log.calls if server.log is not None else ()


def _title(server: str, tool: str) -> str:
    """Return the pattern of the titles by which agents show a call: `mcp__docs__search`, `search (docs MCP Server)`."""
    of, name = (_loosely(part) for part in (server, tool))
    return rf"(?i:mcp)?[\W_]*(?:{of}[\W_]+)?{name}(?:\s*\(.*{of}.*\))?"


def _loosely(name: str) -> str:
    """Return a pattern of a name in which an agent may have replaced all that is no letter or digit."""
    parts: Iterable[str] = (re.escape(part) for part in re.split(r"[\W_]+", name) if part)
    return r"[\W_]*".join(parts) or re.escape(name)
