"""Every call is recorded with the trial that made it."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from typing import Any

import pytest

from keval.plugin import Blob
from keval.records.servers import CallLog
from keval_mcp import Http, Stdio
from keval_mcp.schemas import fit
from tests.contexts import started


def test_calls_are_recorded_with_arguments_result_and_error(
    lasting: Callable[..., Http], outcomes: Callable[..., Any]
) -> None:
    calls = [("echo", {"text": "hi"}), ("picture", {}), ("fail", {}), ("no_such_tool", {"x": None})]

    ((_, log),) = outcomes(lasting(), calls)

    dot = Blob.of(base64.b64decode("R0lGODlhAQABAAAAACw="), "image/gif")
    expected = [
        ("echo", {"text": "hi"}, "hi", None),
        ("picture", {}, f"a dot\n[image/gif blobs/{dot.sha256}]", None),
        ("fail", {}, None, "Error executing tool fail: the tool has failed"),
        ("no_such_tool", {"x": None}, None, "Unknown tool: no_such_tool"),
    ]
    assert expected == [(call.name, call.arguments, call.result, call.error) for call in log.calls]
    assert [("every", 1)] * 4 == [(call.server, call.executions) for call in log.calls]
    assert all(0 < call.duration < 30 for call in log.calls)
    assert [dot] == log.blobs
    assert log.lost is None


def test_a_call_that_failed_says_whether_its_arguments_do_not_fit(
    lasting: Callable[..., Http], outcomes: Callable[..., Any]
) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [("echo", {"txt": "hi"}), ("echo", {"text": [5]}), ("fail", {})]

    ((_, log),) = outcomes(lasting(), [*calls, ("no_such_tool", {})])

    kinds = ["bad_arguments", "bad_arguments", None, None]
    assert kinds == [call.error_kind for call in log.calls]
    assert all(call.error for call in log.calls)


@pytest.mark.parametrize(
    ("schema", "fits"),
    [
        ({"type": "object", "required": ["b"]}, False),
        ({"properties": {"a": {"type": "integer"}}}, False),
        ({"properties": {"a": {"type": "string", "pattern": "^(x+x+)+y$"}}}, True),
        ({"properties": {"a": {"$ref": "https://127.0.0.1:9/schema.json"}}}, True),
        ({"properties": {"a": {"$ref": "#/properties/a"}}}, True),
        ({"properties": {"a": {"type": "no such type"}}}, True),
        ({"properties": 5}, True),
    ],
    ids=["missing", "type", "pattern", "elsewhere", "endless", "unknown", "broken"],
)
def test_a_schema_that_cannot_be_held_against_arguments_refuses_none(schema: dict[str, Any], fits: bool) -> None:
    assert fits == fit(schema, {"a": "x" * 40})


@pytest.mark.parametrize("count", [20, pytest.param(100, marks=pytest.mark.slow)])
def test_trials_at_once_keep_their_calls_apart(
    bare: Callable[..., Stdio], attempt: Callable[..., Any], count: int
) -> None:
    recorded: dict[str, Any] = {}
    answered: dict[str, Any] = {}

    async def trial(source: Any, name: str) -> None:
        texts = [f"{name}.{number}" for number in range(2)]
        async with attempt(source, name) as tapped:
            answered[name] = await asyncio.gather(*(tapped.call("echo", text=text) for text in texts))
        recorded[name] = sorted((call.arguments["text"], call.result) for call in tapped.log.calls)

    async def run() -> None:
        async with started(bare(), "every") as source, asyncio.TaskGroup() as trials:
            for number in range(count):
                trials.create_task(trial(source, f"t{number}"))

    asyncio.run(run())

    assert {f"t{n}": [f"t{n}.0", f"t{n}.1"] for n in range(count)} == answered
    assert {f"t{n}": [(f"t{n}.{i}", f"t{n}.{i}") for i in range(2)] for n in range(count)} == recorded


@pytest.mark.parametrize("count", [40, pytest.param(200, marks=pytest.mark.slow)])
def test_calls_at_once_share_one_session(bare: Callable[..., Stdio], attempt: Callable[..., Any], count: int) -> None:
    async def run() -> tuple[list[str], int]:
        async with started(bare(), "every") as source, attempt(source) as tapped:
            answers = await asyncio.gather(*(tapped.call("echo", text=str(number)) for number in range(count)))
            return answers, len(tapped.log.calls)

    assert ([str(number) for number in range(count)], count) == asyncio.run(run())


def test_call_under_way_when_the_trial_ends_is_recorded_as_abandoned(
    bare: Callable[..., Stdio], attempt: Callable[..., Any], doorbell: Callable[[], Any]
) -> None:
    async def run() -> tuple[CallLog, str]:
        async with started(bare(), "every") as source, doorbell() as bell:
            async with attempt(source) as tapped:
                call = asyncio.create_task(tapped.call("hang", port=bell.port))
                await bell.rung.wait()
                call.cancel()
                await asyncio.wait({call})
            async with attempt(source) as later:
                return tapped.log, await later.call("echo", text="still here")

    log, later = asyncio.run(run())

    expected = [("hang", "the trial ended before the server answered", 1)]
    assert expected == [(call.name, call.error, call.executions) for call in log.calls]
    assert log.lost is None
    assert "still here" == later
