"""What an exception of the MCP SDK says in words."""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["explain"]


def explain(error: BaseException) -> str:
    """Return the messages of an error and of all errors grouped in it, each once."""
    return "; ".join(dict.fromkeys(_messages(error)))


def _messages(error: BaseException) -> Iterator[str]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _messages(inner)
    else:
        yield str(error) or type(error).__name__
