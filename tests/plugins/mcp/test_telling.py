"""The tap tells of calls while they happen, and only of those that go to the server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from keval.plugin import Intervention
from keval.records.interventions import Faults
from keval_mcp import Http
from tests.contexts import started

Told = list[tuple[str, Mapping[str, Any]]]


def test_calls_are_told_of_when_they_are_sent_and_when_they_have_come_back(
    lasting: Callable[..., Http], attempt: Callable[..., Any]
) -> None:
    told: Told = []

    async def run() -> None:
        async with (
            started(lasting(), "every") as source,
            attempt(source, emit=lambda kind, data: told.append((kind, data))) as trial,
        ):
            await trial.call("echo", text="one")
            await trial.call("fail")

    asyncio.run(run())

    durations = [data["duration"] for kind, data in told if kind == "server_returned"]
    timeless = [(kind, {key: part for key, part in data.items() if key != "duration"}) for kind, data in told]
    first, second = ({"server": "every", "tool": name, "call": n} for n, name in enumerate(["echo", "fail"], start=1))
    assert [
        ("server_called", {**first, "arguments": {"text": "one"}}),
        ("server_returned", {**first, "error": None}),
        ("server_called", {**second, "arguments": {}}),
        ("server_returned", {**second, "error": "Error executing tool fail: the tool has failed"}),
    ] == timeless
    assert all(0 < duration < 60 for duration in durations)


def test_a_call_that_an_intervention_answers_is_not_told_of(
    lasting: Callable[..., Http], attempt: Callable[..., Any]
) -> None:
    told: Told = []

    async def run() -> str:
        failing = Intervention(faults=Faults(error=1.0))
        async with (
            started(lasting(), "every", interventions=(failing,)) as source,
            attempt(source, emit=lambda kind, data: told.append((kind, data)), interventions=(failing,)) as trial,
        ):
            return str(await trial.call("echo", text="one"))

    answer = asyncio.run(run())

    assert ("The tool failed: an error inside the server. Calling it again may succeed.", []) == (answer, told)
