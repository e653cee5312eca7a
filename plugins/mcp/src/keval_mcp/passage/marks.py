"""The marks of an agent's request: what is in its `_meta` when it reaches the server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from mcp import MCPError
from mcp.types import CLIENT_CAPABILITIES_META_KEY, INVALID_PARAMS, LOG_LEVEL_META_KEY

from keval_mcp.server.audience import Audience

__all__ = ["check_unicode", "marked", "unmarked"]


@contextmanager
def marked(
    params: Mapping[str, Any],
    meta: Mapping[str, Any],
    audience: Audience,
    listener: Callable[[Mapping[str, Any]], object] | None,
) -> Iterator[Mapping[str, Any]]:
    """Yield an agent's parameters as the server gets them: marked with `meta` and a progress token of keval's own.

    There is a token if there is a `listener`, which gets each notification of progress while the block lasts.
    """
    marks = {**_custom(params.get("_meta")), **meta}
    rest = unmarked(params)
    with ExitStack() as stack:
        if listener is not None:
            marks["progressToken"] = stack.enter_context(audience.listening(listener))
        yield {**rest, "_meta": marks} if marks else rest


def unmarked(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters without their `_meta`."""
    return {name: value for name, value in params.items() if name != "_meta"}


def check_unicode(params: Mapping[str, Any]) -> None:
    """Raise MCPError if parameters cannot be written as JSON in UTF-8."""
    try:
        json.dumps(params, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        problem = "a text holds half a character (a surrogate), which JSON in UTF-8 cannot"
        raise MCPError(INVALID_PARAMS, problem) from error


def _custom(meta: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what the agent itself put into `_meta`; the rest belongs to its connection with the tap.

    What it can do is passed on to a server without sessions.
    """
    own = ("progressToken", "io.modelcontextprotocol/")
    passed = (CLIENT_CAPABILITIES_META_KEY, LOG_LEVEL_META_KEY)
    return {name: value for name, value in (meta or {}).items() if name in passed or not name.startswith(own)}
