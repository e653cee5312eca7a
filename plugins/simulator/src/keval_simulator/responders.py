"""The simulated models by name, as the gateway finds them through the entry-point group `keval.responders`."""

from __future__ import annotations

import attrs

from keval_gateway import ChatReply, ChatRequest
from keval_simulator.model import SimulatedModel

_IGNORES_TOOLS = 0.4


def simulated(seed: int) -> SimulatedModel:
    """Return the simulated model; it also answers for every name that has no responder of its own."""
    return SimulatedModel(seed)


def forgetful(seed: int) -> ForgetfulModel:
    """Return the simulated model without a memory."""
    return ForgetfulModel(SimulatedModel(seed))


def careless(seed: int) -> SimulatedModel:
    """Return a simulated model that answers four questions in ten without looking at its tools."""
    return SimulatedModel(seed, ignores_tools=_IGNORES_TOOLS)


@attrs.frozen
class ForgetfulModel:
    """Answers as `model` would if the conversation began with the user's last message.

    It sees the system prompt, the user's last message and what came after it. It looks preferences up only when it is
    asked for them. In a conversation's first turn it differs from `model` in that alone.
    """

    model: SimulatedModel

    def __call__(self, request: ChatRequest) -> ChatReply:
        """Answer one request; raises what SimulatedModel does."""
        return attrs.evolve(self.model, careless=1.0)(_without_history(request))


def _without_history(request: ChatRequest) -> ChatRequest:
    """Return the request without what was said before the user's last message."""
    last = max((at for at, message in enumerate(request.messages) if message.role == "user"), default=0)
    return attrs.evolve(request, messages=request.messages[last:])
