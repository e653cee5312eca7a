"""The agent plugin: its options, and a trial from its first to its last step."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import attrs

from keval import Sample, Transcript
from keval.plugin import Context, Model, PreflightError, Volatile, Wire, run_conversation
from keval_clients import check_variables

if TYPE_CHECKING:
    from keval_gadk.conversation import AdkConversation, ModelClient

Api: TypeAlias = Literal["auto", "gemini", "chat", "responses", "anthropic"]
"""Which wire protocol to use; `auto` takes the first of this order that the model's endpoint speaks."""

_WIRES: dict[Api, tuple[Wire, ...]] = {
    "auto": ("gemini", "openai-chat", "openai-responses", "anthropic"),
    "gemini": ("gemini",),
    "chat": ("openai-chat",),
    "responses": ("openai-responses",),
    "anthropic": ("anthropic",),
}


@attrs.define
class Gadk:
    """Google ADK: an `LlmAgent` with `McpToolset`s, run by a `Runner` on an in-memory session of its own.

    `max_turns` bounds the model calls of one turn of the user. `max_tokens` bounds one answer; without it ADK's own
    bounds hold (4096 for `chat`, 8192 for `anthropic`, none for the others).
    """

    characteristics: ClassVar[Mapping[str, Any]] = {
        "files": 5,
        "setup": "medium",
        "code": "medium",
        "tool_files": 2,
        "memory": "built-in",
        "errors": "framework",
        "logging": "framework",
        "documentation": "comprehensive",
    }
    """What ADK asks of its developer (metrics-assessment.md, sections 10 to 12)."""

    volatile: ClassVar[tuple[Volatile, ...]] = (
        Volatile(
            "the id that ADK draws for a call to which the model gave none",
            pattern=r"adk-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b",
        ),
    )

    model: Model
    api: Api = "auto"
    temperature: float | None = None
    max_turns: int = attrs.field(default=20, validator=attrs.validators.ge(1))
    max_tokens: int | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.ge(1)))
    _client: ModelClient | None = attrs.field(default=None, init=False, repr=False, eq=False)

    async def prepare(self) -> None:
        """Import ADK and the model's SDK, beside the event loop, and build the model client.

        Raises:
            PreflightError: the model's endpoint does not speak the wire protocol of `api`, a temperature is set where
                none can be, or the environment's variables for the network cannot be used.
        """
        check_variables()
        await asyncio.to_thread(import_module, "keval_gadk.conversation")
        # It imports the SDK of the model's vendor.
        await asyncio.to_thread(self._connect)

    async def run(self, sample: Sample, context: Context) -> Transcript:
        """Ask everything in `sample.asked` in one session. Raises what the session raises, see `open`."""
        return await run_conversation(self, sample, context)

    @asynccontextmanager
    async def open(self, context: Context) -> AsyncIterator[AdkConversation]:
        """Open a session; see `keval.plugin.ConversationalAgent`.

        Raises, also while the agent is asked:
            ModelError: the model's endpoint refused, failed or could not be reached.
            ServerLostError: an MCP server could not be reached, died or stopped answering.
            ToolsMissingError: the model would have been asked with other tools than the condition's.
            TrialError: `max_turns` was exceeded, or the model ended without an answer.
            PreflightError: as `prepare` does, where that was left out.
        """
        # ADK takes more than a second to import, so only a trial does.
        from keval_gadk.conversation import AdkConversation
        from keval_gadk.toolset import open_toolsets

        client = self._connect()
        async with open_toolsets(context.servers) as toolsets:
            conversation = await AdkConversation.start(context, toolsets, client, self)
            await conversation.remember(context.history)
            yield conversation

    async def aclose(self) -> None:
        """Close the HTTP client that all trials share."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def _connect(self) -> ModelClient:
        if self._client is None:
            wire, url, endpoint = self.model.reach(*_WIRES[self.api])
            if wire == "anthropic" and self.temperature is not None:
                raise PreflightError(
                    f"gadk cannot set the temperature of {self.model}: ADK hands it to an argument that the Anthropic"
                    " SDK no longer has; leave temperature out"
                )
            from keval_gadk.conversation import connect  # as in `open`

            self._client = connect(wire, url, endpoint)
        return self._client
