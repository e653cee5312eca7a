"""The conversation of one trial: its ADK agent, runner and session, and what reads off them what ADK really does."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs
from google.adk.agents import LlmAgent, RunConfig
from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.invocation_context import LlmCallsLimitExceededError
from google.adk.agents.run_config import StreamingMode  # type: ignore[attr-defined]  # ADK documents it so
from google.adk.events import Event
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService, Session
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext
from google.genai.types import Content, FinishReason, GenerateContentConfig, HttpOptions, Part, Tool

from keval import Message, Usage
from keval.plugin import (
    ContentKind,
    Context,
    Endpoint,
    ToolsMissingError,
    TranscriptBuilder,
    TrialError,
    Wire,
    is_blank,
    reporting_requests,
    sum_of_counts,
)
from keval_gadk.failure import bad_reply, silent
from keval_gadk.toolset import TrialToolset
from keval_mcp import ToolResult

if TYPE_CHECKING:
    from keval_gadk import Gadk
    from keval_gadk.anthropic_client import AnthropicClient
    from keval_gadk.gemini_client import GeminiClient
    from keval_gadk.openai_client import OpenAIClient

    ModelClient: TypeAlias = AnthropicClient | GeminiClient | OpenAIClient
    """Reaches one model over one wire protocol, without retries of its own."""

_NAME = "agent"  # ADK tells it to the model
_USER = "user"
_SEED_LIMIT = 2**31  # Gemini takes a signed 32-bit seed

# Python prints the warnings of libraries that nobody configured logging for. What ADK logs, a run reports through the
# transcript and its failures instead; a handler that a user installs still gets everything. `client` is MCP's too.
for _library in ("google_adk", "google_genai", "mcp", "client"):
    logging.getLogger(_library).addHandler(logging.NullHandler())


@attrs.define
class AdkConversation:
    """The turns of one trial. The session service is the trial's own too, so nothing of it outlives the trial."""

    _context: Context
    _observer: Observer
    _runner: Runner
    _sessions: InMemorySessionService
    _session: Session
    _max_turns: int
    _client: ModelClient

    @classmethod
    async def start(
        cls, context: Context, toolsets: Sequence[TrialToolset], client: ModelClient, options: Gadk
    ) -> AdkConversation:
        """Build the agent with the context's instructions and these toolsets, and open its session."""
        observer = Observer(context, toolsets, client)
        agent = LlmAgent(
            name=_NAME,
            model=client.llm(context.model_headers, context.seed),
            # A function, because ADK fills `{placeholders}` of a plain text from the session.
            instruction=lambda _: context.instructions,
            tools=[*toolsets],
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
                # Left open, ADK's generator would be closed in a task of its own, after the trial.
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


_REFUSAL = "OpenAI refusal: "
"""What ADK writes before a refusal of OpenAI's Responses API."""
_BROKEN_OFF = "its stream ended before the reply did"


@attrs.define
class Observer:
    """Reports one trial to its builder.

    Its three `…_model` and `…_tool` methods are ADK callbacks; what they raise ends the run before the next request.
    """

    _context: Context
    toolsets: Sequence[TrialToolset]
    _client: ModelClient
    _open_calls: list[str | None] = attrs.field(factory=list, init=False)
    _silence: TrialError | None = attrs.field(default=None, init=False)
    _awaits_reply: bool = attrs.field(default=False, init=False)

    @property
    def _builder(self) -> TranscriptBuilder:
        return self._context.builder

    def before_model(self, callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        """Compare the tools in the request with the condition's, and let no other request pass.

        A trial that follows its servers' tools may offer what they list by now; keval checks that afterwards.
        """
        self._check_servers()
        offered = Counter(_tool_names(llm_request))
        expected = Counter(self._context.tools)
        self._builder.offered(offered.elements())
        follows = any(server.log is not None and server.log.followed for server in self._context.servers)
        if offered != expected and not follows:
            raise ToolsMissingError((expected - offered).elements(), (offered - expected).elements())
        self._awaits_reply = True

    def after_model(self, callback_context: CallbackContext, llm_response: LlmResponse) -> None:
        """Report a piece of a reply as it is streamed, or count the model call and its tokens.

        Raises:
            TrialError: the stream broke off, or the reply has nothing in it, of which ADK makes a reply too.
        """
        if llm_response.partial:
            self._builder.streamed(_said(llm_response))
            return
        if self._context.streams and not self._client.is_whole(llm_response):
            raise bad_reply(_BROKEN_OFF)
        self._awaits_reply = False
        self._builder.model_called(_usage(llm_response, self._client.output_includes_thoughts))
        if llm_response.content is None and llm_response.finish_reason is None and llm_response.error_code is None:
            raise bad_reply("it has no content and no reason")

    def after_tool(
        self, tool: BaseTool, args: dict[str, Any], tool_context: ToolContext, tool_response: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Record a result when it comes, and return it as the model is to be shown it.

        Its event waits for the slowest of the calls made together.
        """
        shown, dropped = self._client.result_form.shape(tool_response)
        self._returned(tool_context.function_call_id, tool_response, dropped)
        return shown

    def saw(self, event: Event) -> None:
        """Record an event: the calls the model asked for, results not yet known, and what was said."""
        # `after_model` has reported these pieces of a stream.
        if event.partial:
            return
        for call in event.get_function_calls():
            self._open_calls.append(call.id)
            self._builder.called(call.name or "", call.args or {}, id=call.id)
        for response in event.get_function_responses():
            self._returned(response.id, response.response or {})
        text = _said(event)
        cut = event.finish_reason is FinishReason.MAX_TOKENS
        self._builder.said(text, truncated=cut, reasoning=_said(event, thought=True))
        # ADK also announces what a run is about to raise this way, so nothing is raised here.
        if not is_blank(text) or event.get_function_calls() or event.get_function_responses():
            self._silence = None
        elif event.error_code or event.finish_reason or event.content is not None:
            self._silence = silent(event)

    def check_turn(self) -> None:
        """Raise TrialError when a turn that seems to have gone well proves nothing."""
        self._check_servers()
        if self._silence is not None:
            raise self._silence
        if self._awaits_reply:
            raise bad_reply(_BROKEN_OFF)

    def _check_servers(self) -> None:
        for toolset in self.toolsets:
            if (loss := toolset.loss) is not None:
                raise loss

    def _returned(self, call: str | None, response: Mapping[str, Any], dropped: Sequence[ContentKind] = ()) -> None:
        # `after_tool` has recorded the result already, when it came.
        if call not in self._open_calls:
            return
        self._open_calls.remove(call)
        text, read = _text(response), ToolResult(response)
        failed = "error" in response or read.is_error
        result, error = (None, text) if failed else (text, None)
        self._builder.returned(result, error=error, id=call, content=read.content, dropped=dropped)
        for blob in read.blobs:
            self._builder.attach(blob.content, blob.media_type)


def _said(response: LlmResponse, *, thought: bool = False) -> str:
    parts = (response.content.parts if response.content else None) or []
    text = "".join(part.text for part in parts if part.text and bool(part.thought) is thought)
    return text.removeprefix(_REFUSAL)


def _tool_names(request: LlmRequest) -> list[str]:
    tools = [tool for tool in request.config.tools or [] if isinstance(tool, Tool)]
    return [declared.name or "" for tool in tools for declared in tool.function_declarations or []]


def _usage(response: LlmResponse, output_includes_thoughts: bool) -> Usage | None:
    counted = response.usage_metadata
    if counted is None:
        return None
    return Usage(
        counted.prompt_token_count,
        sum_of_counts(
            counted.candidates_token_count, None if output_includes_thoughts else counted.thoughts_token_count
        ),
        counted.cached_content_token_count,
        counted.thoughts_token_count,
    )


def _text(response: Mapping[str, Any]) -> str:
    """Return what a tool answered: the text of an MCP result, or ADK's own words for a call that failed."""
    if isinstance(response.get("content"), list):
        return ToolResult(response).text
    return str(response.get("error", response))


def connect(wire: Wire, url: str, endpoint: Endpoint) -> ModelClient:
    """Return a client for `wire`; nothing is sent before the first trial's first request."""
    # Each vendor's SDK is imported for its own wire only: together they take two seconds.
    if wire == "gemini":
        from keval_gadk.gemini_client import GeminiClient

        return GeminiClient(url, endpoint)
    if wire == "anthropic":
        from keval_gadk.anthropic_client import AnthropicClient

        return AnthropicClient(url, endpoint)
    from keval_gadk.openai_client import OpenAIClient

    return OpenAIClient(url, endpoint, wire)
