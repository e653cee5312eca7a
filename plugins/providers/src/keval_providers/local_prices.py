"""The price of models that run on this machine: none."""

from __future__ import annotations

from urllib.parse import urlsplit

from keval.plugin import Price
from keval_providers.table import ALIASES, PROVIDERS

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class LocalPrices:
    """Of Ollama, LM Studio and llamafile at a loopback address, tokens cost nothing."""

    providers = frozenset({"llamafile", "lm_studio", "lmstudio", "ollama", "ollama_chat"})

    def price(self, model: str) -> Price | None:
        """Return the price of a model, given as `provider/name`; `None` unless it runs on this machine."""
        provider, _, name = model.partition("/")
        # Ollama passes on such models as `gpt-oss:120b-cloud` to its own machines.
        if provider not in self.providers or name.endswith("cloud"):
            return None
        urls = PROVIDERS[ALIASES.get(provider, provider)]().urls.values()
        local = all(urlsplit(url).hostname in _LOOPBACK for url in urls)
        return Price(0.0, 0.0, source="runs on this machine") if local else None
