"""Which model an evaluation begins with: one whose key is set, one that a server here has, or keval's simulated one."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping, Sequence

import attrs

from keval import KevalError
from keval.errors import ModelError, suggestion
from keval.records.models import Model
from keval.seams import registry
from keval_clients import HttpClient
from keval_start.models_command import ListedProvider, listed_providers

SIMULATED = "simulated/model"

REAL_MODELS = (
    "{run} -m ollama/qwen3:4b",
    "OPENAI_BASE_URL=http://localhost:8000/v1 OPENAI_API_KEY=none {run} -m openai/MODEL",
    "OPENAI_API_KEY=KEY {run} -m openai/gpt-4o-mini",
)
"""How a run gets a real model: of Ollama, of a server that speaks as OpenAI does, of a vendor."""

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
_PATIENCE, _MOST = 2.0, 3
"""Seconds for a server to list its models, and how many of them are offered."""


@attrs.frozen
class ChosenModel:
    """A model, the agent that asks it in a plain tool loop, and the variable with its key, if it needs one.

    `about` says why it is offered.
    """

    name: str
    loop: str = "openai"
    key: str | None = None
    key_is_set: bool = True
    about: str = ""

    @property
    def simulated(self) -> bool:
        """Whether keval plays it."""
        return self.name.startswith("simulated/")

    @property
    def judge(self) -> str:
        """The model that grades."""
        return "simulated/judge" if self.simulated else self.name


async def offered_models() -> Sequence[ChosenModel]:
    """Return a small model of each vendor whose key is set, and models that a server of one's own says that it has."""
    found: list[ChosenModel] = []
    for each in listed_providers():
        # Where a variable leads to another server than OpenAI's, that may have none of OpenAI's models.
        if each.name in ("ollama", "lm_studio") or (each.name == "openai" and os.environ.get("OPENAI_BASE_URL")):
            names = await _served(each)
            found += [_chosen(f"{each.name}/{name}", each, f"answers at {each.url}") for name in names]
        elif each.key_set is not None and each.name in _SMALL:
            found.append(_chosen(f"{each.name}/{_SMALL[each.name]}", each, f"{each.key_set} is set"))
    return found


async def _served(provider: ListedProvider) -> list[str]:
    """Return the first models that a server lists in OpenAI's way; none if it does not do so at once."""
    key = os.environ.get(provider.key_set or "", "none")
    client = HttpClient("the server", "model", ModelError)
    try:
        async with asyncio.timeout(_PATIENCE):
            reply = await client.ask("GET", f"{provider.url}/models", {"authorization": f"Bearer {key}"})
            names = [str(each["id"]) for each in json.loads(await reply.text())["data"]]
        return [name for name in names if "embed" not in name][:_MOST]
    except (KevalError, TimeoutError, ValueError, LookupError, TypeError):
        return []
    finally:
        await client.aclose()


def chosen_model(name: str) -> ChosenModel:
    """Return the model of this name. Raises ValueError if it is no `provider/name`, or its provider unknown."""
    provider = Model.parse(name).provider
    providers = {each.name: each for each in listed_providers()}
    if provider not in providers:
        told = suggestion(provider, providers) or "; `keval models` lists those that are"
        raise ValueError(f"no provider of models named {provider!r} is installed{told}")
    return _chosen(name, providers[provider])


def _chosen(name: str, provider: ListedProvider, about: str = "") -> ChosenModel:
    plugin, model = registry.load(registry.find("keval.models", provider.name)), Model.parse(name).name
    wires = plugin.wires_of(model) if hasattr(plugin, "wires_of") else provider.wires
    loop = next((_LOOPS[wire] for wire in wires if wire in _LOOPS), "openai")
    needed = bool(provider.key_variables) and not provider.key_optional
    variable = provider.key_set or (provider.key_variables[0] if needed else None)
    return ChosenModel(name, loop, variable, provider.key_set is not None or not needed, about)
