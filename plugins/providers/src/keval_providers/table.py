"""The table of providers, `providers.json`, as classes for the entry points: where each is reached, and how.

Names and variables are those of LiteLLM, so that a model has one name in both; addresses and protocols are those that
each vendor documents. A protocol stands there only if the vendor takes its key as that protocol sends it. Variables
that are called after the provider, and Chat Completions at the base URL itself, are not written down.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs

from keval.plugin import Endpoint, PreflightError
from keval_providers.azure import AzureProvider
from keval_providers.clouds import BedrockProvider, FoundryProvider, VertexProvider
from keval_providers.hosted import HostedProvider, Way

_TABLE: Mapping[str, Any] = json.loads(Path(__file__).with_name("providers.json").read_text(encoding="utf-8"))
_PROXY_URL = "LITELLM_PROXY_API_BASE"


class ProxiedProvider(HostedProvider):
    """A vendor with a protocol of its own, which LiteLLM's proxy speaks; the proxy has the credentials."""

    @asynccontextmanager
    async def open(self, names: Sequence[str], seed: int) -> AsyncIterator[Mapping[str, Endpoint]]:
        """Yield an endpoint per model name; raises PreflightError if nothing says where the proxy is."""
        if not self.urls:
            told = f"{self.vendor}/ models are reached through LiteLLM's proxy: start it, and export {_PROXY_URL}"
            raise PreflightError(f"{told}, such as http://localhost:4000")
        async with super().open(names, seed) as endpoints:
            # `litellm/PROVIDER/NAME` has the vendor in the name.
            vendor = "" if self.vendor == "litellm" else f"{self.vendor}/"
            yield {name: attrs.evolve(endpoint, model=f"{vendor}{name}") for name, endpoint in endpoints.items()}


_KINDS: Mapping[str, type[HostedProvider]] = {
    "azure": AzureProvider,
    "azure_ai": FoundryProvider,
    "bedrock": BedrockProvider,
    "vertex_ai": VertexProvider,
    **dict.fromkeys(_TABLE["proxied"]["vendors"], ProxiedProvider),
}
"""Those that are no plain `HostedProvider`."""


def _provider(vendor: str, written: Mapping[str, Any]) -> type[HostedProvider]:
    """Return the provider that an entry of the table describes."""
    usual = {
        "key_variables": (f"{vendor.upper()}_API_KEY",),
        "url_variables": (f"{vendor.upper()}_API_BASE",),
        "default_url": None,
        "wires": {"openai-chat": ""},
    }
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in written.items()}
    if "ways" in given:
        given["ways"] = tuple(Way(**way) for way in given["ways"])
    kind = _KINDS.get(vendor, HostedProvider)
    named = {"__doc__": kind.__doc__, "__module__": __name__, "vendor": vendor}
    return type(vendor, (kind,), {**named, **usual, **given})


ALIASES: Mapping[str, str] = _TABLE["aliases"]
"""Other names that users type, with the provider that each stands for."""

PROVIDERS: Mapping[str, type[HostedProvider]] = {
    vendor: _provider(vendor, written)
    for vendor, written in (
        _TABLE["providers"] | dict.fromkeys(_TABLE["proxied"]["vendors"], _TABLE["proxied"]["each"])
    ).items()
}


def __getattr__(name: str) -> type[HostedProvider]:
    """Return the provider of that name, for the entry points."""
    if name not in PROVIDERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return PROVIDERS[name]
