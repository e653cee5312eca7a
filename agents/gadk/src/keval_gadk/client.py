"""The model client: one HTTP client per adapter, and one ADK model object per trial upon it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from keval.plugin import Endpoint, Wire

if TYPE_CHECKING:
    from keval_gadk.anthropic_client import AnthropicClient
    from keval_gadk.gemini_client import GeminiClient
    from keval_gadk.openai_client import OpenAIClient

    ModelClient: TypeAlias = AnthropicClient | GeminiClient | OpenAIClient
    """Reaches one model over one wire protocol, without retries of its own."""


def connect(wire: Wire, url: str, endpoint: Endpoint) -> ModelClient:
    """Return a client for `wire`; nothing is sent before the first trial's first request."""
    # Each vendor's SDK is imported for its own wire only: together they take two seconds.
    if wire == "gemini":
        from keval_gadk.gemini_client import GeminiClient

        return GeminiClient(url, endpoint)
    if wire == "anthropic":
        from keval_gadk.anthropic_client import AnthropicClient

        return AnthropicClient(url, endpoint)
    from keval_gadk.openai_client import OpenAIClient

    return OpenAIClient(url, endpoint, wire)
