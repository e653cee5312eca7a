"""The `anthropic` agent: its options, and what its trials share."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

import attrs
from attrs.validators import ge

from keval import Sample, Transcript
from keval.plugin import Context, Model, run_conversation
from keval_anthropic.messages import MessagesChat
from keval_mcp import Chat, Tool, ToolLoop, open_conversation

if TYPE_CHECKING:
    from keval_clients import Client


@attrs.define
class Anthropic:
    """Asks a model over the Anthropic Messages API and runs the tools it calls, until it answers.

    `max_tokens` bounds one reply, as the API wants it. `max_turns` bounds the model calls per message of the user, and
    a trial that wants more fails. The API has no seed.
    """

    applies_middleware: ClassVar[bool] = True

    model: Model = attrs.field(metadata={"provider": "anthropic"})
    temperature: float | None = None
    max_tokens: int = attrs.field(default=4096, validator=ge(1))
    max_turns: int = attrs.field(default=20, validator=ge(1))
    _client: Client | None = attrs.field(default=None, init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        # The core adds the endpoint before the first trial: the moment to find that the model does not speak the API.
        if self.model.endpoint is not None:
            self.model.reach("anthropic")

    async def prepare(self) -> None:
        """Import the HTTP client, beside the event loop, and build the model's."""
        await asyncio.to_thread(import_module, "keval_clients.anthropic")
        self._ready()

    async def run(self, sample: Sample, context: Context) -> Transcript:
        """Hold one conversation; see `keval.plugin.Agent`."""
        return await run_conversation(self, sample, context)

    def open(self, context: Context) -> AbstractAsyncContextManager[ToolLoop]:
        """Open a conversation; see `keval.plugin.ConversationalAgent`."""
        client = self._ready()
        options: dict[str, Any] = {"model": client.model, "max_tokens": self.max_tokens}
        if self.temperature is not None:
            options["temperature"] = self.temperature

        def start(tools: Sequence[Tool]) -> Chat:
            return MessagesChat.start(client, context, tools, options)

        return open_conversation(context, start, max_turns=self.max_turns)

    async def aclose(self) -> None:
        """Close the connections kept for the next trial."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def _ready(self) -> Client:
        if self._client is None:
            from keval_clients import anthropic_client  # imports an HTTP client, which checking a config need not

            _, url, endpoint = self.model.reach("anthropic")
            self._client = anthropic_client(url, endpoint)
        return self._client
