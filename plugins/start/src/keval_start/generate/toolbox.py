"""The toolbox: the tools of a context, which of them may be called, and calls that are made, and made again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import attrs

from keval.errors import ConfigError
from keval.records.formats import counted
from keval_mcp.loop import Sessions, Tool, open_sessions
from keval_mcp.served_context import ServedContext

LONGEST_RESULT = 6_000
"""Characters of a result that are kept: what a model is shown, and what golden answers are checked against."""


@attrs.frozen
class ProposedCall:
    """A call that a model proposes."""

    tool: str
    arguments: Mapping[str, Any]

    @property
    def key(self) -> str:
        """What tells the call from every other one."""
        return f"{self.tool} {json.dumps(self.arguments, sort_keys=True)}"


@attrs.frozen
class Call:
    """A call that was made; `number` counts the calls from 1.

    `text` is the beginning of what a model reads of the result, which is empty if it holds no text. Results with the
    same `digest` have the same content, structured content and `isError`.
    """

    number: int
    proposed: ProposedCall
    text: str
    digest: str
    failed: bool

    @property
    def can_prove(self) -> bool:
        """Whether an answer can be in its result."""
        return bool(self.text) and not self.failed


@attrs.frozen
class Toolbox:
    """The tools of a context that may be called, by name; `left_out` are the names of those that may write.

    `instructions` are what the servers say of themselves.
    """

    served: ServedContext
    tools: Mapping[str, Tool]
    left_out: tuple[str, ...]
    instructions: str

    @classmethod
    async def of(cls, served: ServedContext, *, allow_writes: bool) -> Toolbox:
        """List the tools of a context.

        Raises:
            ConfigError: there is no tool that may be called.
            TrialError: a server was lost.
        """
        async with served.open_servers() as servers, open_sessions(servers) as sessions:
            every = sessions.tools
            instructions = "\n\n".join(server.instructions for server in servers if server.instructions)
        usable = {tool.alias: tool for tool in every if tool.read_only or allow_writes}
        left_out = tuple(tool.alias for tool in every if tool.alias not in usable)
        if not usable:
            why = (
                f"of {counted(len(left_out), 'tool')}, none says that it only reads (readOnlyHint); --allow-writes"
                " calls them all the same"
                if left_out
                else "it has no MCP server; name another with --context"
            )
            raise ConfigError(f"the context {served.label!r} has no tool to call: {why}")
        return cls(served, usable, left_out, instructions)

    @asynccontextmanager
    async def fresh_servers(self) -> AsyncIterator[Sessions]:
        """Enter the context anew, with servers that nobody else uses where keval starts them. Raises TrialError."""
        async with self.served.open_servers() as servers, open_sessions(servers) as sessions:
            yield sessions

    def only_read(self, calls: Sequence[Call]) -> bool:
        """Return whether the tools of all calls say that they only read, so that no call changes another's result."""
        return all(self.tools[call.proposed.tool].read_only for call in calls)


async def made(sessions: Sessions, proposed: ProposedCall, number: int) -> Call:
    """Make a call. Raises TrialError: the server was lost."""
    tool = next(tool for tool in sessions.tools if tool.alias == proposed.tool)
    result = await sessions.call(tool, proposed.arguments)
    text = "\n".join(part for part in result.parts if isinstance(part, str))
    # Nothing else, as what a server says about a result (`_meta`) may be another each time.
    said = [result.raw.get("content"), result.raw.get("structuredContent"), result.is_error]
    digest = hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()
    return Call(number, proposed, text[:LONGEST_RESULT].strip(), digest, failed=result.is_error)


async def changed(sessions: Sessions, calls: Iterable[Call]) -> set[int]:
    """Make calls again, in their order, and return the numbers of those with another result. Raises TrialError."""
    again = [(call, await made(sessions, call.proposed, call.number)) for call in calls]
    return {call.number for call, second in again if second.digest != call.digest}
