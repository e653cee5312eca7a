"""The `ms` agent: its options, and what its trials share."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import attrs

from keval import Sample, Transcript
from keval.plugin import Context, Conversation, Model, Wire, run_conversation
from keval_clients import check_variables

if TYPE_CHECKING:
    from agent_framework import ChatOptions

    from keval_ms.conversation import Clients


@attrs.define
class Ms:
    """Runs trials in the Microsoft Agent Framework.

    `api` chooses the OpenAI API that the framework speaks. `max_turns` bounds the model calls per message of the user,
    and a trial that wants more fails. `seed` of a trial reaches the model with `api: chat` only; the Responses API has
    none.
    """

    characteristics: ClassVar[Mapping[str, Any]] = {
        "files": 4,
        "setup": "low",
        "code": "low",
        "tool_files": 1,
        "memory": "manual",
        "errors": "manual",
        "logging": "basic",
        "documentation": "moderate",
    }
    """What the framework asks of its developer (metrics-assessment.md, sections 10 to 12)."""

    model: Model
    api: Literal["chat", "responses"] = "chat"
    temperature: float | None = None
    max_tokens: int | None = None
    max_turns: int = attrs.field(default=20, validator=attrs.validators.ge(1))
    _clients: Clients | None = attrs.field(default=None, init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        # The core adds the endpoint before the first trial: the moment to find that the model does not speak the API.
        if self.model.endpoint is not None:
            self.model.reach(self.wire)

    @property
    def wire(self) -> Wire:
        """The protocol that reaches the model."""
        return "openai-chat" if self.api == "chat" else "openai-responses"

    async def prepare(self) -> None:
        """Import the framework, beside the event loop, and build the clients.

        Raises PreflightError: the environment's variables for the network cannot be used.
        """
        check_variables()
        await asyncio.to_thread(import_module, "keval_ms.conversation")
        self._ready()

    async def run(self, sample: Sample, context: Context) -> Transcript:
        """Hold one conversation; see `keval.plugin.Agent`."""
        return await run_conversation(self, sample, context)

    def open(self, context: Context) -> AbstractAsyncContextManager[Conversation]:
        """Open a session; see `keval.plugin.ConversationalAgent`."""
        from keval_ms.conversation import open_conversation  # the framework, as in `_ready`

        options = self._options(context.seed)
        return open_conversation(self._ready(), context, options=options, max_turns=self.max_turns)

    def _options(self, seed: int) -> ChatOptions[None]:
        options: ChatOptions[None] = {}
        if self.api == "chat":
            options["seed"] = seed
        else:
            # Otherwise the service keeps what was said, and the framework asks it once more when a trial ends early.
            options["store"] = False
        if self.temperature is not None:
            options["temperature"] = self.temperature
        if self.max_tokens is not None:
            options["max_tokens"] = self.max_tokens
        return options

    def _ready(self) -> Clients:
        # Importing the framework takes most of a second, which checking a config need not pay.
        from keval_ms.conversation import Clients

        if self._clients is None:
            self._clients = Clients.build(*self.model.reach(self.wire), self.max_turns)
        return self._clients

    async def aclose(self) -> None:
        """Close the connections kept for the next trial."""
        if self._clients is not None:
            await self._clients.aclose()
            self._clients = None
