"""Models: the `provider/name` of a config, and the endpoint that serves it.

A provider resolves a model once per run, before the first trial. Adapters and judges call the endpoint they are
handed and never build one of their own, so that a gateway can stand in front of any framework.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Literal, TypeAlias

import attrs

from keval.errors import PreflightError

__all__ = ["Endpoint", "HostedProvider", "Model", "Wire", "anthropic", "google", "openai"]

Wire: TypeAlias = Literal["openai-chat", "openai-responses", "anthropic", "gemini"]
"""A wire protocol: OpenAI Chat Completions, OpenAI Responses, Anthropic Messages, Gemini generateContent."""


@attrs.frozen
class Endpoint:
    """Where a model is reached.

    `urls` has a base URL per wire protocol it speaks, in the form the vendor's own SDK takes. With `wants_trial`,
    requests carry the headers of `Context.model_headers`; only a keval gateway asks for them.
    """

    model: str
    urls: Mapping[Wire, str]
    api_key: str = attrs.field(repr=False)
    simulated: bool = False
    wants_trial: bool = False


@attrs.frozen
class Model:
    """A model by name; a plugin's field annotated `Model` is structured from `provider/name`."""

    provider: str
    name: str
    endpoint: Endpoint | None = attrs.field(default=None, eq=False, repr=False)

    @classmethod
    def parse(cls, text: str) -> Model:
        """Split `provider/name`; the name may itself hold slashes. Raises ValueError."""
        provider, slash, name = text.partition("/")
        if not (slash and provider and name):
            raise ValueError(f"a model is provider/name, such as openai/gpt-4o-mini; got {text!r}")
        return cls(provider, name)

    def __str__(self) -> str:
        return f"{self.provider}/{self.name}"

    def reach(self, *wires: Wire) -> tuple[Wire, str, Endpoint]:
        """Return the first of `wires` that the endpoint speaks, its base URL and the endpoint.

        Raises PreflightError when it speaks none of them.
        """
        if self.endpoint is None:
            raise PreflightError(f"the model {self} was not resolved before use; run it through keval")
        for wire in wires:
            if wire in self.endpoint.urls:
                return wire, self.endpoint.urls[wire], self.endpoint
        raise PreflightError(
            f"the model {self} speaks {', '.join(self.endpoint.urls)}, and {' or '.join(wires)} is needed here;"
            " choose a model of another provider or another agent"
        )


@attrs.frozen
class HostedProvider:
    """A vendor's hosted API, with the key and base URL from the vendor's own environment variables."""

    vendor: str
    wires: tuple[Wire, ...]
    key_variables: tuple[str, ...]
    url_variable: str
    default_url: str

    @asynccontextmanager
    async def open(self, names: Sequence[str], seed: int) -> AsyncIterator[Mapping[str, Endpoint]]:
        """Yield an endpoint per model name; raises PreflightError naming the variable that is not set."""
        key = next((os.environ[name] for name in self.key_variables if os.environ.get(name)), None)
        if key is None:
            wanted = " or ".join(self.key_variables)
            used = ", ".join(f"{self.vendor}/{name}" for name in names)
            raise PreflightError(f"{wanted} is not set; {used} needs it: export it, or choose a simulated/ model")
        url = os.environ.get(self.url_variable) or self.default_url
        yield {name: Endpoint(name, dict.fromkeys(self.wires, url), key) for name in names}


def openai() -> HostedProvider:
    """OpenAI, or anything compatible behind OPENAI_BASE_URL."""
    return HostedProvider(
        "openai",
        ("openai-chat", "openai-responses"),
        ("OPENAI_API_KEY",),
        "OPENAI_BASE_URL",
        "https://api.openai.com/v1",
    )


def anthropic() -> HostedProvider:
    """Anthropic, or anything compatible behind ANTHROPIC_BASE_URL."""
    return HostedProvider(
        "anthropic", ("anthropic",), ("ANTHROPIC_API_KEY",), "ANTHROPIC_BASE_URL", "https://api.anthropic.com"
    )


def google() -> HostedProvider:
    """Google's Gemini API."""
    return HostedProvider(
        "google",
        ("gemini",),
        ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
        "GOOGLE_GEMINI_BASE_URL",
        "https://generativelanguage.googleapis.com",
    )
