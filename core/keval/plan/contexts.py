"""The contexts of a plan: constructed, and checked for changes that cannot be made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from keval.errors import RunError
from keval.plan.construct import Constructor
from keval.plan.plan import ResolvedPlugin
from keval.recording.loose import open_loose

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


def contexts_of(constructor: Constructor, *, played: bool = False) -> Mapping[str, ResolvedPlugin]:
    """Construct the contexts, by label; what is wrong is added to the constructor's problems.

    If they are `played`, in a replay, the recordings that they name are not needed.
    """
    resolved = constructor.plugins("keval.contexts", constructor.evaluation.contexts, "start")
    for item in resolved:
        if item.changed_at and isinstance(item.plugin, _Tappable) and not item.plugin.tap:
            constructor.problem(item.changed_at[-1], UNTAPPED, at_key=True)
        if not played:
            _check_recorded(constructor, item)
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


def _check_recorded(constructor: Constructor, context: ResolvedPlugin) -> None:
    """Add a problem where a recorded run that a context names has no recording that can be read, or a second one is."""
    found = [
        (place, change.recorded)
        for place, change in zip(context.changed_at, context.interventions, strict=True)
        if change.recorded is not None
    ]
    for place, results in found[:1]:
        try:
            open_loose(results)
        except RunError as error:
            constructor.problem((*place, "results", "recorded"), str(error))
    for place, _ in found[1:]:
        told = "the results are recorded ones already; derive from the context before that"
        constructor.problem((*place, "results"), told, at_key=True)
