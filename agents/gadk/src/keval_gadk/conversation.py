"""The conversation: one ADK agent, runner and session, for one trial."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from contextlib import aclosing
from typing import TYPE_CHECKING

import attrs
from google.adk.agents import LlmAgent, RunConfig
from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.invocation_context import LlmCallsLimitExceededError
from google.adk.agents.run_config import StreamingMode  # type: ignore[attr-defined]  # ADK documents it so
from google.adk.events import Event
from google.adk.models.llm_request import LlmRequest
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService, Session
from google.genai.types import Content, GenerateContentConfig, HttpOptions, Part

from keval import Message
from keval.plugin import Context, TrialError, reporting_requests
from keval_gadk.failure import bad_reply
from keval_gadk.observer import Observer

if TYPE_CHECKING:
    from keval_gadk import Gadk
    from keval_gadk.client import ModelClient

_NAME = "agent"  # ADK tells it to the model
_USER = "user"
_SEED_LIMIT = 2**31  # Gemini takes a signed 32-bit seed

# Python prints the warnings of libraries that nobody configured logging for. What ADK logs, a run reports through the
# transcript and its failures instead; a handler that a user installs still gets everything. `client` is MCP's too.
for _library in ("google_adk", "google_genai", "mcp", "client"):
    logging.getLogger(_library).addHandler(logging.NullHandler())


@attrs.define
class Conversation:
    """The turns of one trial. The session service is the trial's own too, so nothing of it outlives the trial."""

    _context: Context
    _observer: Observer
    _runner: Runner
    _sessions: InMemorySessionService
    _session: Session
    _max_turns: int
    _client: ModelClient

    @classmethod
    async def start(cls, context: Context, observer: Observer, client: ModelClient, options: Gadk) -> Conversation:
        """Build the agent with the context's instructions and the observer's toolsets, and open its session."""
        agent = LlmAgent(
            name=_NAME,
            model=client.llm(context.model_headers, context.seed),
            # A function, because ADK fills `{placeholders}` of a plain text from the session.
            instruction=lambda _: context.instructions,
            tools=[*observer.toolsets],
            generate_content_config=GenerateContentConfig(
                temperature=options.temperature,
                max_output_tokens=options.max_tokens,
                seed=context.seed % _SEED_LIMIT,
                http_options=HttpOptions(headers=dict(context.model_headers)),
            ),
            before_model_callback=observer.before_model,
            after_model_callback=observer.after_model,
            after_tool_callback=observer.after_tool,
            on_model_error_callback=_explained(client),
        )
        sessions = InMemorySessionService()
        runner = Runner(app_name="keval", agent=agent, session_service=sessions)
        session = await sessions.create_session(app_name="keval", user_id=_USER)
        return cls(context, observer, runner, sessions, session, options.max_turns, client)

    async def remember(self, history: Iterable[Message]) -> None:
        """Put what user and assistant said earlier into the session."""
        for message in history:
            assistant = message.role == "assistant"
            content = Content(role="model" if assistant else "user", parts=[Part(text=message.text)])
            event = Event(author=_NAME if assistant else _USER, content=content, invocation_id="history")
            await self._sessions.append_event(self._session, event)

    async def ask(self, text: str) -> None:
        """Send one message of the user and wait for the agent's answer. Raises TrialError."""
        try:
            await self._ask(text)
        except self._client.errors as error:
            raise self._client.failure(error) from error

    async def _ask(self, text: str) -> None:
        with self._context.builder.turn(text), reporting_requests(self._context.builder):
            events = self._runner.run_async(
                user_id=_USER,
                session_id=self._session.id,
                new_message=Content(role="user", parts=[Part(text=text)]),
                run_config=RunConfig(
                    max_llm_calls=self._max_turns,
                    streaming_mode=StreamingMode.SSE if self._context.streams else StreamingMode.NONE,
                ),
            )
            try:
                async with aclosing(events):
                    async for event in events:
                        self._observer.saw(event)
            except LlmCallsLimitExceededError as error:
                raise TrialError(
                    f"the agent wanted more than {self._max_turns} model calls for one turn; raise max_turns if it"
                    " should go on",
                    kind="max_turns",
                ) from error
            self._observer.check_turn()


def _explained(client: ModelClient) -> Callable[[CallbackContext, LlmRequest, Exception], None]:
    """Return ADK's callback for an error of a model request: any that is not known was met in reading the reply.

    ADK looks for a text in the response of an error on its way up, which fails where that is a stream.
    """

    def failed(callback_context: CallbackContext, llm_request: LlmRequest, error: Exception) -> None:
        if isinstance(error, client.errors):
            raise client.failure(error) from error
        if not isinstance(error, (TrialError, LlmCallsLimitExceededError)):
            raise bad_reply(f"{type(error).__name__}: {error}") from error

    return failed
