"""What judges may offer besides grading: replies of their models to any request, such as for questions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import attrs

from keval.seams.contexts import JudgeContext


@attrs.frozen
class StructuredRequest:
    """A request for a reply that is JSON of a schema: the system prompt, the user message, and the JSON Schema."""

    instructions: str
    message: str
    schema: Mapping[str, Any]


@runtime_checkable
class RepliesInJson(Protocol):
    """A judge that also lets its model be asked for something else than a judgement."""

    async def reply(self, request: StructuredRequest, context: JudgeContext) -> str:
        """Ask once, and return the text of the reply, which need not be valid.

        Raises:
            TrialError: no reply came, or one that was cut short.
        """
        ...
