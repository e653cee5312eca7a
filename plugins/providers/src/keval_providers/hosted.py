"""Hosted models: keys and base URLs from the vendors' own environment variables."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import attrs

from keval.plugin import Endpoint, PreflightError, Wire


@attrs.frozen
class HostedProvider:
    """A vendor's hosted API, with the key and base URL from the vendor's own environment variables.

    `wires` has each protocol that it speaks, with what follows the base URL. `families` are the beginnings of names
    that belong to the vendor.
    """

    vendor: str
    wires: Mapping[Wire, str]
    key_variables: tuple[str, ...]
    url_variable: str
    default_url: str
    families: tuple[str, ...] = ()

    @asynccontextmanager
    async def open(self, names: Sequence[str], seed: int) -> AsyncIterator[Mapping[str, Endpoint]]:
        """Yield an endpoint per model name; raises PreflightError naming the variable that is not set."""
        key = next((os.environ[name] for name in self.key_variables if os.environ.get(name)), None)
        if key is None:
            wanted = " or ".join(self.key_variables)
            used = ", ".join(f"{self.vendor}/{name}" for name in names)
            raise PreflightError(f"{wanted} is not set; {used} needs it: export it, or choose a simulated/ model")
        url = os.environ.get(self.url_variable) or self.default_url
        urls: dict[Wire, str] = {wire: f"{url.rstrip('/')}{path}" if path else url for wire, path in self.wires.items()}
        yield {name: Endpoint(name, urls, key) for name in names}


def openai() -> HostedProvider:
    """OpenAI, or anything compatible behind OPENAI_BASE_URL."""
    return HostedProvider(
        "openai",
        {"openai-chat": "", "openai-responses": ""},
        ("OPENAI_API_KEY",),
        "OPENAI_BASE_URL",
        "https://api.openai.com/v1",
        ("gpt-",),
    )


def anthropic() -> HostedProvider:
    """Anthropic, or anything compatible behind ANTHROPIC_BASE_URL."""
    return HostedProvider(
        "anthropic",
        {"anthropic": ""},
        ("ANTHROPIC_API_KEY",),
        "ANTHROPIC_BASE_URL",
        "https://api.anthropic.com",
        ("claude",),
    )


def google() -> HostedProvider:
    """Google's Gemini API, by its own protocol and by OpenAI's, which it speaks beside it."""
    return HostedProvider(
        "google",
        {"gemini": "", "openai-chat": "/v1beta/openai"},
        ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
        "GOOGLE_GEMINI_BASE_URL",
        "https://generativelanguage.googleapis.com",
        ("gemini",),
    )
