"""Serving on loopback: a port, a server that ends with its context, and which requests it must refuse."""

from keval import lazily

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "keval_loopback.child": "serving_until_ended",
        "keval_loopback.loopback": "inherited listen refusal",
        "keval_loopback.process": "ServerProgram run_server",
        "keval_loopback.serving": "CLOSE disconnected serve",
    },
)
