"""What a user should know of a plan, before it runs."""

from __future__ import annotations

from rich.console import Console

from keval.report.terminal import safe
from keval.run.plan import Plan

__all__ = ["print_notices"]

_MOST = 20


def print_notices(plan: Plan, console: Console) -> None:
    """Print the plan's notices, each with its place: the first 20, and how many more there are."""
    for notice in plan.notices[:_MOST]:
        console.print(safe(f"note: {notice}", "yellow"), soft_wrap=True)
    if (more := len(plan.notices) - _MOST) > 0:
        console.print(f"note: {more} more like these", soft_wrap=True)
