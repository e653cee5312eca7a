"""The simulated models by name: one that forgets, one that is careless, and the one that all others stand for."""

from __future__ import annotations

import attrs

from keval_gateway.chat import ChatReply, ChatRequest
from keval_gateway.simulate.model import SimulatedModel

__all__ = ["CARELESS", "FORGETFUL", "SimulatedModels"]

FORGETFUL = "forgetful"
"""The name of the model that forgets, as in `simulated/forgetful`."""
CARELESS = "careless"
"""The name of the model that often ignores its tools."""

_IGNORES_TOOLS = 0.4


@attrs.frozen
class SimulatedModels:
    """Answers each request as the model it names does, all with the seed of `plain`.

    `forgetful` sees of a conversation the system prompt, the user's last message and what came after it, and never
    looks preferences up unless it is asked for them. In the first turn it is `plain` but for that. `careless` answers
    four questions in ten from its head, though it has tools, and is `plain` otherwise.
    """

    plain: SimulatedModel = attrs.field(factory=SimulatedModel)

    def __call__(self, request: ChatRequest) -> ChatReply:
        """Answer one request; raises what SimulatedModel does."""
        if request.model == FORGETFUL:
            return attrs.evolve(self.plain, careless=1.0)(_present(request))
        if request.model == CARELESS:
            return attrs.evolve(self.plain, ignores_tools=_IGNORES_TOOLS)(request)
        return self.plain(request)


def _present(request: ChatRequest) -> ChatRequest:
    """Return the request without what was said before the user's last message."""
    last = max((at for at, message in enumerate(request.messages) if message.role == "user"), default=0)
    return attrs.evolve(request, messages=request.messages[last:])
