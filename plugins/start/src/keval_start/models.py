"""Which model an evaluation begins with: one whose key is set, or keval's simulated one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from keval.errors import suggestion
from keval.records.models import Model
from keval.seams import registry
from keval_start.models_command import ListedProvider, listed_providers

SIMULATED = "simulated/model"

_SMALL: Mapping[str, str] = {
    "openai": "gpt-4o-mini",
    "anthropic": "claude-haiku-4-5",
    "google": "gemini-2.5-flash",
    "mistral": "mistral-small-latest",
    "groq": "llama-3.3-70b-versatile",
    "deepseek": "deepseek-chat",
}
"""A model of each vendor that answers quickly and costs little."""
_LOOPS: Mapping[str, str] = {"openai-chat": "openai", "anthropic": "anthropic", "gemini": "gadk"}
"""The agent that is nearest to a plain tool loop, by the protocol."""


@attrs.frozen
class ChosenModel:
    """A model, the agent that asks it in a plain tool loop, and the variable with its key, if it needs one."""

    name: str
    loop: str = "openai"
    key: str | None = None
    key_is_set: bool = True

    @property
    def simulated(self) -> bool:
        """Whether keval plays it."""
        return self.name.startswith("simulated/")

    @property
    def judge(self) -> str:
        """The model that grades."""
        return "simulated/judge" if self.simulated else self.name


def offered_models() -> Sequence[ChosenModel]:
    """Return a small model of each vendor whose key is set."""
    return [
        _chosen(f"{provider.name}/{_SMALL[provider.name]}", provider)
        for provider in listed_providers()
        if provider.key_set is not None and provider.name in _SMALL
    ]


def chosen_model(name: str) -> ChosenModel:
    """Return the model of this name. Raises ValueError if it is no `provider/name`, or its provider unknown."""
    provider = Model.parse(name).provider
    providers = {each.name: each for each in listed_providers()}
    if provider not in providers:
        told = suggestion(provider, providers) or "; `keval models` lists those that are"
        raise ValueError(f"no provider of models named {provider!r} is installed{told}")
    return _chosen(name, providers[provider])


def _chosen(name: str, provider: ListedProvider) -> ChosenModel:
    plugin, model = registry.load(registry.find("keval.models", provider.name)), Model.parse(name).name
    wires = plugin.wires_of(model) if hasattr(plugin, "wires_of") else provider.wires
    loop = next((_LOOPS[wire] for wire in wires if wire in _LOOPS), "openai")
    needed = bool(provider.key_variables) and not provider.key_optional
    variable = provider.key_set or (provider.key_variables[0] if needed else None)
    return ChosenModel(name, loop, variable, provider.key_set is not None or not needed)
