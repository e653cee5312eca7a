"""A loopback model server: every vendor's wire protocol in front of a responder, or of the model itself.

A responder is a function that answers a `ChatRequest` with a `ChatReply`. A package adds one by name through the
entry-point group `keval.responders`, which leads to a factory (`MakeResponder`). `model_proxy` is for runs with
middleware: it stands between agents and their models.

What imports a web server or asyncio is not imported here, so that naming a model stays cheap: `build_app` is in
`keval_gateway.app`, `serve` in `keval_loopback.serving`, and `run_gateway` in `keval_gateway.process`.
"""

from keval_gateway.chat import (
    ChatCall,
    ChatMessage,
    ChatReply,
    ChatRequest,
    ChatTool,
    MakeResponder,
    ModelFault,
    Observe,
    Respond,
    wire_urls,
)
from keval_gateway.proxy import model_proxy
from keval_gateway.responders import find_responder, make_responder

__all__ = [
    "ChatCall",
    "ChatMessage",
    "ChatReply",
    "ChatRequest",
    "ChatTool",
    "MakeResponder",
    "ModelFault",
    "Observe",
    "Respond",
    "find_responder",
    "make_responder",
    "model_proxy",
    "wire_urls",
]
