"""A list of what people said of a run's answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from typing import Any

import attrs
from rich.console import Console
from rich.text import Text

from keval.report.console import safe
from keval.report.figures import counted
from keval.reviews import Review

__all__ = ["describe_reviews", "print_reviews"]


def describe_reviews(reviews: Iterable[Review], limit: int | None) -> Iterator[dict[str, Any]]:
    """Yield reviews as plain data, as reviews.jsonl has them."""
    for review in islice(reviews, limit):
        yield attrs.asdict(review)


def print_reviews(reviews: Iterable[Review], limit: int | None, console: Console) -> None:
    """Print reviews, those of one answer together, in the order in which answers were first reviewed."""
    every = [*reviews]
    order = {trial: place for place, trial in enumerate(dict.fromkeys(review.trial for review in every))}
    shown = sorted(every[:limit], key=lambda review: order[review.trial])
    for trial, group in groupby(shown, key=lambda review: review.trial):
        console.print(safe(trial, "bold"), soft_wrap=True)
        for review in group:
            what = (
                f"{review.metric} {review.level}" if review.kind == "level" else f"{review.kind} {review.thumb or ''}"
            )
            told = f": {review.note}" if review.note else ""
            how = f"{review.at}{', blind' if review.blind else ''}"
            line = Text.assemble("  ", safe(what.strip()), safe(told), safe(f"  {review.reviewer}, {how}", "dim"))
            console.print(line, soft_wrap=True)
    left = len(every) - len(shown)
    more = f"; {left} more are left out by --limit" if left else ""
    console.print(Text(f"{counted(len(shown), 'review') if shown else 'no reviews'}{more}.", "dim"))
