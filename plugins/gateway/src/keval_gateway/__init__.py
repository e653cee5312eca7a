"""A loopback model server: every vendor's wire protocol in front of a responder, or of the model itself.

A responder is a function that answers a `ChatRequest` with a `ChatReply`. A package adds one by name through the
entry-point group `keval.responders`, which leads to a factory (`MakeResponder`). `model_proxy` is for runs with
middleware: it stands between agents and their models.

A name is imported when it is used, so that naming a model stays cheap: `build_app` and `run_gateway` import a web
server.
"""

from keval import lazily

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "keval_gateway.app": "build_app",
        "keval_gateway.chat": "ChatCall ChatMessage ChatReply ChatRequest ChatTool ModelFault Respond wire_urls",
        "keval_gateway.process": "run_gateway",
        "keval_gateway.responders": "find_responder",
    },
)
