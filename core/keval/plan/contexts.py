"""The contexts of a plan: constructed, and checked for changes that cannot be made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from keval.plan.construct import Constructor
from keval.plan.plan import ResolvedPlugin

__all__ = ["UNTAPPED", "contexts_of"]

UNTAPPED = (
    "agents connect to this server themselves, so nothing about it can be changed; let keval connect to it"
    " (leave out `tap: false`), or leave this out"
)
"""What is wrong with an intervention where no tap is."""


@runtime_checkable
class _Tappable(Protocol):
    """A context whose agents reach its servers through the tap, unless `tap` is false."""

    tap: bool


def contexts_of(constructor: Constructor) -> Mapping[str, ResolvedPlugin]:
    """Construct the contexts, by label; what is wrong is added to the constructor's problems."""
    resolved = constructor.plugins("keval.contexts", constructor.evaluation.contexts, "start")
    for item in resolved:
        if item.changed_at and isinstance(item.plugin, _Tappable) and not item.plugin.tap:
            constructor.problem(item.changed_at[-1], UNTAPPED, at_key=True)
    found = {item.label: item for item in resolved}
    for label, condition in constructor.evaluation.conditions.items():
        first: dict[str, str] = {}
        for index, name in enumerate(condition.contexts):
            if name not in found:
                continue
            origin = found[name].origin or name
            if first.get(origin, name) != name:
                told = (
                    f"{name!r} and {first[origin]!r} are the same server, changed differently; put them into separate"
                    " conditions"
                )
                constructor.problem(("conditions", label, "contexts", index), told)
            first.setdefault(origin, name)
    return found
