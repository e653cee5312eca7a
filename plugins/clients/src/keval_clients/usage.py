"""Tokens, as each API reports them; what is missing or is no number is unknown, and never costs the reply."""

from __future__ import annotations

from keval import Usage

__all__ = ["completions_usage", "messages_usage", "responses_usage"]


def completions_usage(usage: object) -> Usage:
    """Read the `usage` of Chat Completions; cached tokens are among the input's and reasoning among the output's."""
    return Usage(
        _count(usage, "prompt_tokens"),
        _count(usage, "completion_tokens"),
        _count(usage, "prompt_tokens_details", "cached_tokens"),
        _count(usage, "completion_tokens_details", "reasoning_tokens"),
    )


def responses_usage(usage: object) -> Usage:
    """Read the `usage` of OpenAI's Responses; cached tokens are among the input's and reasoning among the output's."""
    return Usage(
        _count(usage, "input_tokens"),
        _count(usage, "output_tokens"),
        _count(usage, "input_tokens_details", "cached_tokens"),
        _count(usage, "output_tokens_details", "reasoning_tokens"),
    )


def messages_usage(usage: object) -> Usage:
    """Read the `usage` of Anthropic's Messages, which counts what was read from a cache or written to one apart."""
    plain, cached = _count(usage, "input_tokens"), _count(usage, "cache_read_input_tokens")
    written = _count(usage, "cache_creation_input_tokens")
    return Usage(
        None if plain is None else plain + (cached or 0) + (written or 0),
        _count(usage, "output_tokens"),
        # Where the API counts input tokens and says nothing of its cache, nothing was read from it.
        0 if cached is None and plain is not None else cached,
        _count(usage, "output_tokens_details", "thinking_tokens"),
    )


def _count(usage: object, *keys: str) -> int | None:
    for key in keys:
        usage = usage.get(key) if isinstance(usage, dict) else None
    # True is an int, too.
    return usage if type(usage) is int and usage >= 0 else None
