"""The vendors of models: a judge may favour what a model of its own vendor answers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from keval.errors import Problem

if TYPE_CHECKING:  # who reads a summary needs no plan
    from keval.plan.plan import ResolvedPlugin

_FAMILIES: Mapping[str, str] = {
    "openai": r"gpt|chatgpt|o\d+(-|$)",
    "anthropic": "claude",
    "google": "gemini|gemma|palm",
    "meta": "llama",
    "mistral": r"\w*stral|mixtral",
    "deepseek": "deepseek",
    "alibaba": "qwen|qwq",
    "xai": "grok",
    "cohere": "command|c4ai",
    "amazon": "nova|titan",
    "microsoft": "phi-|wizardlm",
    "moonshot": "kimi",
}
"""What the names of each vendor's models begin with."""
_OWNERS = {"gemini": "google", "vertex": "google", "mistralai": "mistral", "meta-llama": "meta", "x-ai": "xai"}
"""Vendors under the names that providers and routers have for them."""


@attrs.frozen
class SameVendor:
    """A judge whose model is of the same vendor as those of some agents, by their labels."""

    judge: str
    agents: tuple[str, ...]
    vendor: str


def vendor_of(model: str) -> str | None:
    """Return who made a model that is named as `provider/name`, or as `router/vendor/name`; `None` if it is unknown."""
    *owners, name = model.lower().split("/")
    for part in (name, *name.split(".")):  # a host may write us.anthropic.claude-…
        for vendor, begins in _FAMILIES.items():
            if re.match(begins, part):
                return vendor
    owner = _OWNERS.get(owners[-1], owners[-1]) if owners else None
    return owner if owner in _FAMILIES or len(owners) > 1 else None


def same_vendors(
    agents: Iterable[tuple[str, Iterable[str]]], judges: Iterable[tuple[str, Iterable[str]]]
) -> Iterator[SameVendor]:
    """Yield the judges that share a vendor with agents; each is given by its label and its models."""
    made = {label: {vendor_of(model) for model in models} - {None} for label, models in agents}
    for judge, models in judges:
        for vendor in dict.fromkeys(map(vendor_of, models)):
            if vendor is not None and (found := tuple(label for label, vendors in made.items() if vendor in vendors)):
                yield SameVendor(judge, found, vendor)


def vendor_notices(agents: Sequence[ResolvedPlugin], judges: Sequence[ResolvedPlugin]) -> Iterator[Problem]:
    """Yield a notice for each judge whose model is of the same vendor as an agent's."""
    places = {item.label: item.place for item in judges}
    asked, asking = ([(item.label, item.model_names) for item in items] for items in (agents, judges))
    for found in same_vendors(asked, asking):
        told = f"the judge {found.judge!r} is of the same vendor as {', '.join(found.agents)} ({found.vendor}) and may"
        remedy = "take one of another vendor, or hold it against people: keval review RUN --sample 40"
        yield Problem(places[found.judge], f"{told} favour its answers; {remedy}")
