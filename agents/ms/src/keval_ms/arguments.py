"""The arguments of a tool call, from what the model asked to what the framework sends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["LET_THROUGH", "passed_on"]

LET_THROUGH = (
    *("chat_options", "conversation_id", "options", "response_format"),
    *("session", "thread", "tool_choice", "tools"),
)
"""Arguments that the framework would take for its own, even where a tool declares them, if it were not told of them."""

_KEPT_BACK = frozenset({"_meta", "ctx"})
"""Arguments that it sends to no server in any case."""


def passed_on(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments that the framework passes on: what a tool does not declare is dropped, if not refused."""
    declared = schema.get("properties")
    if declared is None or schema.get("additionalProperties") is False:
        return {name: value for name, value in arguments.items() if name not in _KEPT_BACK}
    allowed = {*declared, *LET_THROUGH} - _KEPT_BACK
    return {name: value for name, value in arguments.items() if name in allowed}
