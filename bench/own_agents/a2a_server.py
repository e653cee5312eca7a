"""An agent that speaks A2A and asks a model: a server that prints its URL, and ends with its standard input."""

from __future__ import annotations

import asyncio
import sys

from a2a.helpers import new_text_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore
from a2a.types.a2a_pb2 import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
from a2a.utils.errors import UnsupportedOperationError
from functions import own_model
from starlette.applications import Starlette

from keval_loopback.serving import serve

ABOUT = "Says where the key is."


class Answering(AgentExecutor):
    """Answers each message by one message."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        await event_queue.enqueue_event(new_text_message(await own_model(context.get_user_input())))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise UnsupportedOperationError("a message is answered at once")


async def main() -> None:
    interface = AgentInterface(url="http://127.0.0.1", protocol_binding="JSONRPC", protocol_version="1.0")
    card = AgentCard(
        name="keys",
        description=ABOUT,
        version="1",
        supported_interfaces=[interface],
        capabilities=AgentCapabilities(streaming=False),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="keys", name="keys", description=ABOUT, tags=["keys"])],
    )
    handler = DefaultRequestHandler(Answering(), InMemoryTaskStore(), card)
    app = Starlette(routes=[*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/a2a")])
    async with serve(app) as url:
        card.supported_interfaces[0].url = f"{url}/a2a"
        print(url, flush=True)
        await asyncio.to_thread(sys.stdin.read)


asyncio.run(main())
