"""Failures of a run in words: how many of which kind, and what the first of each kind said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from keval.summary import Summary

__all__ = ["failure_lines", "scorer_failure_lines"]


def failure_lines(summary: Summary) -> list[str]:
    """Return a line for each arm and kind of failed trials."""
    return [
        line
        for arm in summary.trials
        for line in _told(f"{arm.agent} {arm.condition}", arm.failures, arm.failure_messages)
    ]


def scorer_failure_lines(summary: Summary) -> list[str]:
    """Return a line for each kind of failure of a metric or judge, over all arms."""
    counts: dict[str, Counter[str]] = {}
    messages: dict[str, dict[str, str]] = {}
    for arm in summary.arms:
        who = arm.judge or arm.metric
        counts.setdefault(who, Counter()).update(arm.failures)
        messages[who] = {**arm.failure_messages, **messages.get(who, {})}
    return [line for who, found in counts.items() for line in _told(who, found, messages[who])]


def _told(who: str, counts: Mapping[str, int], messages: Mapping[str, str]) -> Iterator[str]:
    for kind, count in counts.items():
        said = messages.get(kind)
        first = f"{'; the first: ' if count > 1 else ': '}{said}" if said else ""
        yield f"{who}: {count} × {kind}{first}"
