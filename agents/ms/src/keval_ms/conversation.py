"""One trial: the framework's agent, its MCP sessions and the conversation the sample asks for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from agent_framework import Agent, ChatOptions, Message, MiddlewareFailure
from agent_framework.exceptions import ToolException

from keval import Context, Sample, TrialError
from keval_ms.clients import Clients
from keval_ms.faults import causes
from keval_ms.sessions import open_sessions
from keval_ms.watch import Watch

__all__ = ["converse"]


async def converse(
    clients: Clients, sample: Sample, context: Context, *, options: ChatOptions[None], max_turns: int
) -> None:
    """Ask everything in `sample.asked` in one session, reporting to the context's recorder.

    Raises:
        TrialError: the servers do not come up or are lost, the model fails, or it never answers.
    """
    async with open_sessions(context.servers, clients.mcp) as sessions:
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
        memory = agent.create_session()
        earlier = [Message(message.role, [message.text]) for message in sample.history]
        for text in sample.asked:
            with context.recorder.turn(text), _unwrapped():
                response = await agent.run(
                    [*earlier, Message("user", [text])],
                    session=memory,
                    client_kwargs={"extra_headers": dict(context.model_headers)},
                )
                watch.end_turn(response)
            earlier = []


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
