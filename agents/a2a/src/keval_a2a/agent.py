"""The `a2a` agent: its options, and what its trials share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import urlsplit

import attrs

from keval import Sample, Transcript
from keval.plugin import Context, TrialError, run_conversation
from keval_clients import check_headers

if TYPE_CHECKING:
    from keval_a2a.conversation import A2AConversation
    from keval_a2a.remote import RemoteAgent


@attrs.define
class A2A:
    """Asks a remote agent over the Agent2Agent protocol.

    `url` is that of the agent, or of its card, which is then a file. `headers` go with every request. The messages of a
    trial have one context id. With `servers_metadata`, the metadata of each message has the condition's MCP servers
    under that name, as a list of names and URLs.
    """

    flag_option: ClassVar[str] = "url"

    url: str
    headers: Mapping[str, str] = attrs.field(factory=dict, repr=False, validator=check_headers)
    servers_metadata: str | None = None
    _remote: RemoteAgent | None = attrs.field(default=None, init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        if urlsplit(self.url).scheme not in {"http", "https"} or not urlsplit(self.url).hostname:
            raise ValueError(f"'url' must begin with http:// or https:// and a host; got {self.url!r:.60}")

    async def prepare(self) -> None:
        """Import the SDK, beside the event loop, and fetch the agent's card."""
        await asyncio.to_thread(import_module, "keval_a2a.conversation")
        await self._ready()

    def servers_refusal(self) -> str | None:
        """Say why the agent cannot be given MCP servers; see `keval.plugin.RefusesServers`."""
        if self.servers_metadata is not None:
            return None
        return (
            "A2A hands none over; name the metadata in which this agent expects them (`servers_metadata`), or leave it"
            " out of conditions with servers"
        )

    async def run(self, sample: Sample, context: Context) -> Transcript:
        """Hold one conversation; see `keval.plugin.Agent`."""
        return await run_conversation(self, sample, context)

    @asynccontextmanager
    async def open(self, context: Context) -> AsyncIterator[A2AConversation]:
        """Open a conversation; see `keval.plugin.ConversationalAgent`."""
        from keval_a2a.conversation import A2AConversation

        if context.history:
            problem = "A2A has no place for what was said earlier; make it part of the question, or ask it as turns"
            raise TrialError(problem, kind="history_unsupported")
        if context.servers and (refusal := self.servers_refusal()) is not None:
            raise TrialError(refusal, kind="servers_unsupported")
        context.builder.leave_calls_to_tap(context.servers)
        remote = await self._ready()
        remote.transport.most = context.max_reply_bytes
        yield A2AConversation(remote, context, self._metadata(context))

    async def aclose(self) -> None:
        """Close the connections kept for the next trial."""
        remote, self._remote = self._remote, None
        if remote is not None:
            await remote.aclose()

    def _metadata(self, context: Context) -> Mapping[str, object]:
        servers = [{"name": server.name, "url": server.url} for server in context.servers]
        if unreachable := [server.name for server in context.servers if server.url is None]:
            problem = f"the server {unreachable[0]!r} has no URL by which an agent could reach it; remove `tap: false`"
            raise TrialError(problem, kind="servers_unsupported")
        return {} if self.servers_metadata is None else {self.servers_metadata: servers}

    async def _ready(self) -> RemoteAgent:
        if self._remote is None:
            from keval_a2a.remote import RemoteAgent  # imports the SDK, which checking a config need not

            self._remote = await RemoteAgent.connect(self.url, self.headers)
        return self._remote
