"""What errors say in words: an exception of the MCP SDK, and where a server is."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from keval.plugin import McpServer, ServerSpec

__all__ = ["explain", "place_of"]


def explain(error: BaseException) -> str:
    """Return the messages of an error and of all errors grouped in it, each once."""
    return "; ".join(dict.fromkeys(_messages(error)))


def place_of(server: McpServer | ServerSpec) -> str:
    """Return where a server is reached, without what may be secret in its URL."""
    if server.url is None:
        return ""
    parts = urlsplit(server.url)
    return f"at {parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path} "


def _messages(error: BaseException) -> Iterator[str]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _messages(inner)
    else:
        yield str(error) or type(error).__name__
