"""Where a gateway is reached: its base URLs, and the environment variable that has its API key."""

from __future__ import annotations

from collections.abc import Mapping

from keval.plugin import Wire

__all__ = ["KEY_VARIABLE", "wire_urls"]

KEY_VARIABLE = "KEVAL_GATEWAY_KEY"
"""The environment variable that may have the API key that a gateway admits; a command's argument shows in `ps`."""


def wire_urls(base: str) -> Mapping[Wire, str]:
    """Return the base URL per wire protocol of the gateway at `base`, in the form that each vendor's SDK takes."""
    return {
        "openai-chat": f"{base}/openai/v1",
        "openai-responses": f"{base}/openai/v1",
        "anthropic": f"{base}/anthropic",
        "gemini": f"{base}/gemini",
    }
