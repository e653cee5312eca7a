"""Which exchange of a recording answers what is asked now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import attrs

from keval.records.cassettes import ModelTraffic, ServerTraffic, Traffic, TrafficError

T = TypeVar("T", ModelTraffic, ServerTraffic)

POLLS = ("tasks/get", "tasks/list")
"""Requests of MCP that clients make again and again, at times of their own."""


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
    """Return whether a replay may have more or fewer of this exchange, so that no other one waits for it."""
    return isinstance(exchange, ServerTraffic) and exchange.method in POLLS


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


def settled(traffic: Sequence[Traffic]) -> list[Traffic]:
    """Return traffic in which calls that went on as tasks ended with what was fetched of these."""
    fetched: dict[tuple[str, int, Any], ServerTraffic] = {}
    for each in traffic:
        if isinstance(each, ServerTraffic) and each.ended is not None:
            result = (each.result or {}).get("result") if each.method == "tasks/get" else each.result
            if each.method == "tasks/result" or (each.method == "tasks/get" and result is not None):
                fetched[each.server, each.attempt, each.params.get("taskId")] = attrs.evolve(each, result=result)

    def settle(each: Traffic) -> Traffic:
        if not isinstance(each, ServerTraffic) or each.kind != "call" or (task := _task_of(each)) is None:
            return each
        came = fetched.get((each.server, each.attempt, task))
        error = TrafficError("abandoned") if came is None else came.error
        return attrs.evolve(each, result=None if came is None else came.result, error=error)

    return [settle(each) for each in traffic]


def _task_of(call: ServerTraffic) -> object:
    result = call.result or {}
    task = result if result.get("resultType") == "task" else result.get("task") if "task" in call.params else None
    return task.get("taskId") if isinstance(task, dict) else None
