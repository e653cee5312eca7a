"""One conversation: the framework's agent, its MCP sessions and its memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import attrs
from agent_framework import Agent, AgentResponse, AgentSession, ChatOptions, Message, MiddlewareFailure
from agent_framework.exceptions import ToolException

from keval.plugin import Context, TrialError, reporting_requests
from keval_ms.clients import Clients
from keval_ms.faults import causes
from keval_ms.results import result_parser
from keval_ms.sessions import open_sessions
from keval_ms.watch import Watch

__all__ = ["Conversation", "open_conversation"]


@asynccontextmanager
async def open_conversation(
    clients: Clients, context: Context, *, options: ChatOptions[None], max_turns: int
) -> AsyncIterator[Conversation]:
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
        yield Conversation(context, watch, agent, agent.create_session(), earlier)


@attrs.define
class Conversation:
    """A session with the framework's agent; `earlier` goes with the first message."""

    _context: Context
    _watch: Watch
    _agent: Agent[Any]
    _memory: AgentSession
    _earlier: Sequence[Message]

    async def ask(self, text: str) -> None:
        """Send one message of the user, reporting to the context's recorder.

        Raises:
            TrialError: a server is lost, the model fails, or it never answers.
        """
        recorder = self._context.recorder
        with recorder.turn(text), reporting_requests(recorder), _unwrapped():
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
