"""A loopback model server: every vendor's wire protocol in front of a responder, or of the model itself.

A responder is a function that answers a `ChatRequest` with a `ChatReply`. A package adds one by name through the
entry-point group `keval.responders`, which leads to a factory (`MakeResponder`). `model_proxy` is for runs with
middleware: it stands between agents and their models.

A name is imported when it is used, so that naming a model stays cheap: `build_app` and `run_gateway` import a web
server.
"""

from keval_gateway.app import build_app as build_app
from keval_gateway.chat import (
    ChatCall as ChatCall,
    ChatMessage as ChatMessage,
    ChatReply as ChatReply,
    ChatRequest as ChatRequest,
    ChatTool as ChatTool,
    ModelFault as ModelFault,
    Respond as Respond,
    wire_urls as wire_urls,
)
from keval_gateway.process import run_gateway as run_gateway
from keval_gateway.responders import find_responder as find_responder
