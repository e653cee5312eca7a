"""Opening: reading on in what a search has found, where a tool is offered that does."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from keval_gateway.chat import ChatCall, ChatTool
from keval_gateway.simulate.conversation import Conversation
from keval_gateway.simulate.schema import resolved, schema_type
from keval_gateway.simulate.words import lexicon, split_identifier

__all__ = ["is_search", "opened_by", "opening_calls"]

_SEARCHES = lexicon("search find lookup query")
_OPENS = lexicon("read open get fetch show view")
_NAMES = lexicon("page path url uri slug title document doc file article section")
_MOST_OPENED = 2


def is_search(tool: str) -> bool:
    """Tell by its name whether a tool searches."""
    return bool(_SEARCHES & set(split_identifier(tool)))


def opened_by(tool: ChatTool) -> str | None:
    """Return the parameter by which a tool opens one document, or `None` when it does something else."""
    words = split_identifier(tool.name)
    required = list(tool.parameters.get("required") or ())
    if not _OPENS & set(words) or is_search(tool.name) or len(required) != 1:
        return None
    (name,) = required
    schema = resolved((tool.parameters.get("properties") or {}).get(name), tool.parameters)
    return name if _NAMES & set(split_identifier(name)) and schema_type(schema) == "string" else None


def opening_calls(tools: Sequence[ChatTool], conversation: Conversation) -> list[ChatCall]:
    """Return the calls that open the first documents that searches for this question have named."""
    found = [outcome.reading.data for outcome in conversation.outcomes if is_search(outcome.call.name)]
    for tool in tools:
        if parameter := opened_by(tool):
            named = dict.fromkeys(name for data in found for name in _named(data, parameter))
            return [ChatCall(tool.name, {parameter: name}) for name in [*named][:_MOST_OPENED]]
    return []


def _named(data: Any, parameter: str) -> Iterator[str]:
    """Yield what a result has under a parameter's name, as a key of a record or as `name: value` in a text."""
    if isinstance(data, str):
        line = rf"^\W*{re.escape(parameter)}\W*:\W*?([^\s\"'`*,]+)"
        yield from re.findall(line, data, re.MULTILINE | re.IGNORECASE)
    elif isinstance(data, Mapping):
        for key, value in data.items():
            if key == parameter and isinstance(value, str):
                yield value
            else:
                yield from _named(value, parameter)
    elif isinstance(data, list):
        for item in data:
            yield from _named(item, parameter)
