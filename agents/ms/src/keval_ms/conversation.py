"""One conversation: the framework's agent, its MCP sessions and its memory, over clients that all trials share."""

from __future__ import annotations

import logging
import warnings
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, TypeAlias

import attrs
from agent_framework import Agent, AgentResponse, AgentSession, ChatOptions, Message, MiddlewareFailure
from agent_framework.exceptions import ToolException
from agent_framework.openai import OpenAIChatClient, OpenAIChatCompletionClient
from httpx2 import AsyncClient, Limits, Timeout
from mcp import MCPDeprecationWarning
from openai import AsyncOpenAI, DefaultAsyncHttpxClient

from keval.plugin import Context, Endpoint, TrialError, Wire, report_request, reporting_requests
from keval_clients import Network
from keval_ms.faults import causes
from keval_ms.tools import open_sessions, result_parser
from keval_ms.watch import Watch

ChatClient: TypeAlias = OpenAIChatCompletionClient[Any] | OpenAIChatClient[Any]

_CONNECT_TIMEOUT = 30.0


@attrs.frozen
class Clients:
    """The framework's chat client for one model over one wire, and the HTTP client of MCP servers without a tap."""

    wire: Wire
    chat: ChatClient
    _openai: AsyncOpenAI
    _mcp: list[AsyncClient] = attrs.field(factory=list, init=False)

    @classmethod
    def build(cls, wire: Wire, url: str, endpoint: Endpoint, max_turns: int) -> Clients:
        """Build both; a message of the user may take `max_turns` model calls."""
        _keep_off_the_terminal()
        # keval retries in one place. A client of our own also leaves out the headers by which the framework tells
        # the model's host about itself.
        http = DefaultAsyncHttpxClient(event_hooks={"request": [report_request]}, **Network.to(url).client)
        openai = AsyncOpenAI(base_url=url, api_key=endpoint.api_key, max_retries=0, http_client=http)
        kind = OpenAIChatCompletionClient if wire == "openai-chat" else OpenAIChatClient
        chat: ChatClient = kind(model=endpoint.model, async_client=openai)
        # At the next call the framework would ask for an answer without tools; there the trial fails instead.
        chat.function_invocation_configuration["max_iterations"] = max_turns
        return cls(wire, chat, openai)

    def mcp(self) -> AsyncClient:
        """Return the client for MCP servers, made by the first that needs it: it takes any proxy of the environment."""
        if not self._mcp:
            self._mcp.append(_mcp_client())
        return self._mcp[0]

    async def aclose(self) -> None:
        """Close every pooled connection."""
        await self._openai.close()
        for client in self._mcp:
            await client.aclose()


def _mcp_client() -> AsyncClient:
    """Return an HTTP client that many trials share and learn nothing about each other through.

    No cookies are kept, and no number of trials at once waits for a connection. How long a call may take is bounded
    by the MCP session, by the server's own timeout.
    """
    return AsyncClient(
        cookies=CookieJar(policy=DefaultCookiePolicy(allowed_domains=[])),
        limits=Limits(max_connections=None, max_keepalive_connections=100),
        timeout=Timeout(_CONNECT_TIMEOUT, read=None),
    )


def _keep_off_the_terminal() -> None:
    """Stop the SDKs' logs from reaching stderr where nobody configured logging; whoever does still gets them all.

    Everything they say about a trial is in its transcript or its failure.
    """
    for name in ("agent_framework", "mcp"):
        logger = logging.getLogger(name)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
    # The framework pings servers of the older protocol by a method that the MCP SDK has deprecated.
    warnings.filterwarnings("ignore", category=MCPDeprecationWarning, module=r"agent_framework\.")


@asynccontextmanager
async def open_conversation(
    clients: Clients, context: Context, *, options: ChatOptions[None], max_turns: int
) -> AsyncIterator[FrameworkConversation]:
    """Connect to the servers and open a session that begins with the context's history.

    Raises:
        TrialError: the servers do not come up, or offer other tools than the condition's.
    """
    async with open_sessions(context.servers, clients.mcp, result_parser(clients.wire)) as sessions:
        watch = Watch(context, max_turns, sessions)
        agent = Agent(
            clients.chat,
            context.instructions or None,
            # Without a name, later turns would tell the model that it is "UnnamedAgent".
            name="assistant",
            tools=[session.tool for session in sessions],
            middleware=[watch.model_call, watch.tool_call],
            default_options=options,
        )
        earlier = [Message(message.role, [message.text]) for message in context.history]
        yield FrameworkConversation(context, watch, agent, agent.create_session(), earlier)


@attrs.define
class FrameworkConversation:
    """A session with the framework's agent; `earlier` goes with the first message."""

    _context: Context
    _watch: Watch
    _agent: Agent[Any]
    _memory: AgentSession
    _earlier: Sequence[Message]

    async def ask(self, text: str) -> None:
        """Send one message of the user, reporting to the context's builder.

        Raises:
            TrialError: a server is lost, the model fails, or it never answers.
        """
        builder = self._context.builder
        with builder.turn(text), reporting_requests(builder), _unwrapped():
            self._watch.end_turn(await self._answer([*self._earlier, Message("user", [text])]))
        self._earlier = []

    async def _answer(self, messages: Sequence[Message]) -> AgentResponse[Any]:
        kwargs = {"extra_headers": dict(self._context.model_headers)}
        if not self._context.streams:
            return await self._agent.run(messages, session=self._memory, client_kwargs=kwargs)
        async with self._agent.run(messages, stream=True, session=self._memory, client_kwargs=kwargs) as stream:
            return await stream.get_final_response()


@contextmanager
def _unwrapped() -> Iterator[None]:
    """Raise the error with which keval ended a run, instead of what the framework wrapped around it."""
    try:
        yield
    except (MiddlewareFailure, ToolException) as error:
        for cause in causes(error):
            if isinstance(cause, TrialError):
                raise cause from None
        raise
