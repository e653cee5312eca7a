"""Changed contexts: checks that interventions fit what the servers offer, and places what does not in the config."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager

from keval.config.source import Source
from keval.errors import FieldError, InterventionError, PreflightError
from keval.plan.contexts import UNTAPPED
from keval.plan.plan import ResolvedPlugin
from keval.servers import ToolOffer

__all__ = ["changes_placed", "check_changes"]


@contextmanager
def changes_placed(context: ResolvedPlugin, source: Source) -> Iterator[None]:
    """Report what is wrong with a context's interventions as a PreflightError, each at its place in the config."""
    try:
        yield
    except InterventionError as error:
        problems = []
        for (number, *rest), message, at_key in error.errors:
            place = source.place((*context.changed_at[int(number)], *rest), key=at_key or not rest)
            problems.append(f"{place}: {message}")
        raise PreflightError(problems) from error


def check_changes(context: ResolvedPlugin, offers: Sequence[ToolOffer], tapped: Collection[str]) -> None:
    """Raise InterventionError where a context's interventions change nothing, or leave nothing."""
    if not context.interventions:
        return
    last = len(context.interventions) - 1
    if any(offer.server not in tapped for offer in offers):
        raise InterventionError([FieldError((last,), UNTAPPED)])
    if errors := _unmatched_by_all(offers):
        raise InterventionError(errors)
    if not any(offer.tools for offer in offers):
        told = f"the context {context.label!r} is left without any tool; leave out fewer"
        raise InterventionError([FieldError((last,), told)])


def _unmatched_by_all(offers: Iterable[ToolOffer]) -> list[FieldError]:
    """Return an error for each name that no server of a context has, preferably one with a hint."""
    found: dict[tuple[str | int, ...], list[FieldError]] = {}
    servers = 0
    for offer in offers:
        servers += 1
        for error in offer.unmatched:
            found.setdefault(error.path, []).append(error)
    return [
        next((error for error in errors if "did you mean" in error.message), errors[0])
        for errors in found.values()
        if len(errors) == servers
    ]
