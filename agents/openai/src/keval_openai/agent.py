"""The `openai` agent: its options, and what its trials share."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import attrs
from attrs.validators import ge, optional

from keval import Sample, Transcript
from keval.plugin import Context, Model, Wire, run_conversation
from keval_mcp import Chat, Tool, ToolLoop, open_conversation
from keval_openai.completions import CompletionsChat
from keval_openai.formats import Input, media_types
from keval_openai.responses import ResponsesChat

if TYPE_CHECKING:
    from keval_clients import Client


@attrs.define
class OpenAI:
    """Asks a model over an OpenAI API and runs the tools it calls, until it answers.

    `api` chooses the API. `max_turns` bounds the model calls per message of the user, and a trial that wants more
    fails. A trial's seed reaches the model with `api: chat` only, as the Responses API has none; with `seed` off it is
    not sent, for endpoints that refuse it. `inputs` is what the model takes beside text of what tools return; the
    Responses API has no audio.
    """

    applies_middleware: ClassVar[bool] = True

    model: Model = attrs.field(metadata={"provider": "openai"})
    api: Literal["chat", "responses"] = "chat"
    temperature: float | None = None
    max_tokens: int | None = attrs.field(default=None, validator=optional(ge(1)))
    max_turns: int = attrs.field(default=20, validator=ge(1))
    seed: bool = True
    inputs: tuple[Input, ...] = attrs.field(default=("image", "pdf"))
    _client: Client | None = attrs.field(default=None, init=False, repr=False, eq=False)

    @inputs.validator
    def _check_inputs(self, attribute: object, value: tuple[Input, ...]) -> None:
        if "audio" in value and self.api == "responses":
            raise ValueError(
                "the Responses API takes no `audio` as one of the `inputs`; leave it out, or set `api: chat`"
            )

    def __attrs_post_init__(self) -> None:
        # The core adds the endpoint before the first trial: the moment to find that the model does not speak the API.
        if self.model.endpoint is not None:
            self.model.reach(self.wire)

    @property
    def wire(self) -> Wire:
        """The protocol that reaches the model."""
        return "openai-chat" if self.api == "chat" else "openai-responses"

    async def prepare(self) -> None:
        """Import the HTTP client, beside the event loop, and build the model's."""
        await asyncio.to_thread(import_module, "keval_clients.openai")
        self._ready()

    async def run(self, sample: Sample, context: Context) -> Transcript:
        """Hold one conversation; see `keval.plugin.Agent`."""
        return await run_conversation(self, sample, context)

    def open(self, context: Context) -> AbstractAsyncContextManager[ToolLoop]:
        """Open a conversation; see `keval.plugin.ConversationalAgent`."""
        return open_conversation(context, partial(self._chat, context), max_turns=self.max_turns)

    async def aclose(self) -> None:
        """Close the connections kept for the next trial."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def _chat(self, context: Context, tools: Sequence[Tool]) -> Chat:
        client, media = self._ready(), media_types(self.inputs)
        if self.api == "chat":
            fixed = {"seed": context.seed} if self.seed else {}
            return CompletionsChat.start(client, context, tools, self._options(**fixed), media=media)
        return ResponsesChat.start(client, context, tools, self._options(), media=media)

    def _options(self, **fixed: Any) -> dict[str, Any]:
        options = {"model": self._ready().model, **fixed}
        if self.temperature is not None:
            options["temperature"] = self.temperature
        if self.max_tokens is not None:
            # Newer models of OpenAI refuse `max_tokens`.
            options["max_completion_tokens" if self.api == "chat" else "max_output_tokens"] = self.max_tokens
        return options

    def _ready(self) -> Client:
        if self._client is None:
            from keval_clients import openai_client  # imports an HTTP client, which checking a config need not

            _, url, endpoint = self.model.reach(self.wire)
            self._client = openai_client(url, endpoint)
        return self._client
