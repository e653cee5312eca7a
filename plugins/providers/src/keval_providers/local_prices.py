"""The price of models that run on this machine: none."""

from __future__ import annotations

from urllib.parse import urlsplit

from keval.plugin import Price
from keval_providers.table import ALIASES, PROVIDERS

_LOCAL = ("llamafile", "lm_studio", "lmstudio", "ollama", "ollama_chat")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class LocalPrices:
    """Of Ollama, LM Studio and llamafile at a loopback address, tokens cost nothing."""

    @property
    def providers(self) -> set[str]:
        """Those that are at a loopback address, as the environment says now."""
        urls = {name: PROVIDERS[ALIASES.get(name, name)]().urls.values() for name in _LOCAL}
        return {name for name, each in urls.items() if all(urlsplit(url).hostname in _LOOPBACK for url in each)}

    def price(self, model: str) -> Price | None:
        """Return the price of a model, given as `provider/name`; `None` unless it runs on this machine."""
        provider, _, name = model.partition("/")
        # Ollama passes on such models as `gpt-oss:120b-cloud` to its own machines.
        local = provider in self.providers and not name.endswith("cloud")
        return Price(0.0, 0.0, source="runs on this machine") if local else None
