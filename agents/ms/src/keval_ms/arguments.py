"""The arguments of a tool call, from what the model asked to what the framework sends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["passed_on"]

_KEPT_BACK = frozenset(
    {
        "_meta",
        "chat_options",
        "conversation_id",
        "ctx",
        "options",
        "response_format",
        "session",
        "thread",
        "tool_choice",
        "tools",
    }
)
"""Arguments that the framework takes for its own and sends to no server, even where a tool declares them."""


def passed_on(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments that the framework passes on: what a tool does not declare is dropped, if not refused."""
    declared = schema.get("properties")
    if declared is None or schema.get("additionalProperties") is False:
        return {name: value for name, value in arguments.items() if name not in _KEPT_BACK}
    return {name: value for name, value in arguments.items() if name in declared and name not in _KEPT_BACK}
