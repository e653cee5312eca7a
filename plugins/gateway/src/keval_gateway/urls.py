"""The base URLs of a gateway, in the form each vendor's SDK takes."""

from __future__ import annotations

from collections.abc import Mapping

from keval import Wire

__all__ = ["wire_urls"]


def wire_urls(base: str) -> Mapping[Wire, str]:
    """Return the base URL per wire protocol of the gateway at `base`."""
    return {
        "openai-chat": f"{base}/openai/v1",
        "openai-responses": f"{base}/openai/v1",
        "anthropic": f"{base}/anthropic",
        "gemini": f"{base}/gemini",
    }
