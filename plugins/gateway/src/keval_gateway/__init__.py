"""A loopback model server: every vendor's wire protocol in front of one responder, simulated or scripted.

The web server is in `keval_gateway.app` and `keval_gateway.serving`, which import Starlette and uvicorn and are
therefore not imported here: naming a simulated model must stay cheap.
"""

from keval import ModelProvider
from keval_gateway.chat import ChatCall, ChatMessage, ChatReply, ChatRequest, ChatTool, ModelFault, Observe, Respond
from keval_gateway.urls import wire_urls

__all__ = [
    "ChatCall",
    "ChatMessage",
    "ChatReply",
    "ChatRequest",
    "ChatTool",
    "ModelFault",
    "Observe",
    "Respond",
    "simulated",
    "wire_urls",
]


def simulated() -> ModelProvider:
    """Return the model provider behind `simulated/…`."""
    from keval_gateway.provider import SimulatedProvider  # asyncio's subprocesses cost as much as all the rest

    return SimulatedProvider()
