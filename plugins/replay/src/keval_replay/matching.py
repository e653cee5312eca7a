"""Which exchange of a recording answers what is asked now."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from keval.records.cassettes import ModelTraffic, ServerTraffic, Traffic

T = TypeVar("T", ModelTraffic, ServerTraffic)

_POLLS = ("tasks/get", "tasks/list")


def next_equal(exchanges: Iterable[T], is_equal: Callable[[T], bool]) -> T | None:
    """Return the first exchange that is equal: the next one, or one of those that overlap with it."""
    end: int | None = None
    for number, each in enumerate(exchanges):
        if number == 0:
            end = each.ended
        elif end is not None and each.began > end:
            return None
        if is_equal(each):
            return each
    return None


def is_poll(exchange: Traffic) -> bool:
    """Return whether clients ask this again and again, at times of their own: no other exchange waits for it."""
    return isinstance(exchange, ServerTraffic) and exchange.method in _POLLS


def next_of_task(left: list[ServerTraffic], asked: ServerTraffic) -> ServerTraffic | None:
    """Return the next exchange that is equal to a request about a task; what is of other tasks may come before.

    The last answer to a poll is put into `left` again, as it holds on.
    """
    known = (asked.kind, asked.method, asked.params)
    equal = [each for each in left if (each.kind, each.method, each.params) == known]
    answered = [each for each in equal if each.ended is not None]
    if is_poll(asked) and len(answered) == 1:
        left += answered
    return next(iter(answered or equal), None)
