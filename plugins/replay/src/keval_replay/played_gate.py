"""What stands in front of an endpoint in a replay, and answers in its place."""

from __future__ import annotations

import attrs

from keval.execute.models.gate import Failed, RequestScope, sent
from keval.records.models import ModelRequest, ModelResponse, Next
from keval_replay.cassette import AttemptCassette


@attrs.frozen
class PlayedGate:
    """Repeats a request where it was repeated when it was recorded, at once; remembers nothing of other requests."""

    async def ask(self, request: ModelRequest, send: Next, scope: RequestScope) -> ModelResponse:
        """Answer as the gate did that was recorded; see `Gate`."""
        while isinstance(outcome := await sent(request, send), Failed):
            played = scope.traffic if isinstance(scope.traffic, AttemptCassette) else None
            refusal = played.repeated(outcome.status, outcome.message) if played is not None else None
            if refusal is None:
                return outcome.passed_on()
            scope.requests.refused(refusal)
        return outcome

    async def deny(self, refused: str, asker: str) -> None:
        """Do nothing: what was recorded after it is played."""

    def reopen(self) -> None:
        """Do nothing: a recording is not given up."""
