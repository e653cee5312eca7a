"""By `readOnlyHint` alone no server is shared: equal calls of its tools must give equal results, in every process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from keval.plugin import Intervention, Sharing
from keval_mcp import Http, Stdio
from tests.contexts import started
from tests.processes import Listening

TRIALS = 5
TRUSTED = Sharing(True, "every tool is read-only, and equal calls gave equal results")


@pytest.fixture
def hinted(tmp_path: Path, server: Callable[..., Stdio]) -> Callable[..., Stdio]:
    """Describe a server of these tools, which trials share if keval trusts its hints."""
    return lambda *tools, **options: server(
        "hinted", str(tmp_path / "calls"), *tools, **{"isolation": "auto", **options}
    )


@pytest.fixture
def calls(tmp_path: Path) -> Callable[[], list[tuple[int, str, Any]]]:
    """Read which process got which calls."""

    def read() -> list[tuple[int, str, Any]]:
        found = tmp_path / "calls"
        return [tuple(json.loads(line)) for line in found.read_text("utf-8").splitlines()] if found.exists() else []

    return read


@pytest.fixture
def run(attempt: Callable[..., Any]) -> Callable[..., tuple[Sharing | None, list[str], int]]:
    """Bring a server up for some trials, which call a tool each; returns what was decided, read, and started."""

    async def tried(
        provider: Any, tool: str, trials: int, interventions: tuple[Intervention, ...]
    ) -> tuple[Sharing | None, list[str], int]:
        read = []
        async with started(provider, "it", start_ahead=trials, interventions=interventions) as source:
            for number in range(trials):
                async with attempt(source, f"t{number}") as tapped:
                    read.append(await tapped.call(tool))
                    assert [tool] == [call.name for call in tapped.log.calls], "what was tried is no agent's call"
            return source.tool_listings[0].sharing, read, source.servers["it"].starts.processes

    return lambda provider, tool, trials=TRIALS, interventions=(): asyncio.run(
        tried(provider, tool, trials, interventions)
    )


@pytest.mark.parametrize("tools", [["add"], ["cached"], ["stamped"], ["chosen", "cached", "add"]])
def test_trials_share_what_answers_equal_calls_alike(
    hinted: Callable[..., Stdio], run: Callable[..., Any], calls: Callable[[], list[Any]], tools: Sequence[str]
) -> None:
    sharing, read, processes = run(hinted(*tools), tools[0])

    assert (TRUSTED, 1, 2) == (sharing, len(set(read)), processes), "one for all, and one to compare with"
    first, asked = calls()[0][0], [(pid, tool) for pid, tool, _ in calls()]
    assert [*tools, *tools] + [tools[0]] * TRIALS == [tool for pid, tool in asked if pid == first]
    assert [*reversed(tools)] == [tool for pid, tool in asked if pid != first]


@pytest.mark.parametrize(
    ("tools", "why"),
    [
        (["count"], "equal calls of count gave different results, despite its readOnlyHint"),
        (["now"], "equal calls of now gave different results, despite its readOnlyHint"),
        (["pid"], "equal calls of pid gave different results, despite its readOnlyHint"),
        (["chosen", "choose"], "equal calls of chosen gave different results, despite its readOnlyHint"),
        (["choose", "chosen"], "equal calls of chosen gave different results, despite its readOnlyHint"),
        (["add", "fail"], "readOnlyHint could not be tried: fail failed with {}"),
        (["add", "refuse"], "readOnlyHint could not be tried: refuse failed: no such thing"),
        (["add", "end"], "readOnlyHint could not be tried: end failed: server 'it' was lost during 'end'"),
        (["add", "slow"], "readOnlyHint could not be tried: calls took more than 0.5 s, up to slow"),
    ],
)
def test_no_trial_finds_what_another_one_left_behind_a_wrong_hint(
    hinted: Callable[..., Stdio],
    run: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    tools: Sequence[str],
    why: str,
) -> None:
    if "slow" in tools:
        monkeypatch.setattr("keval_mcp.hints.SECONDS", 0.5)

    sharing, read, processes = run(hinted(*tools), tools[0], trials=2)

    assert (False, True) == (sharing.shared, sharing.verified)
    assert sharing.why.startswith(why)
    alike = {"count": "1", "chosen": "nowhere", "choose": "chosen", "add": "1 + 1 = 2"}
    assert [alike.get(tools[0], each) for each in read] == read
    assert 3 <= processes <= 4, "one for each trial, and those that were asked before"


@pytest.mark.parametrize(
    ("tools", "expected", "read"),
    [
        (["add"], TRUSTED, ["1 + 1 = 2"] * 2),
        (
            ["count"],
            Sharing(False, "equal calls of count gave different results, despite its readOnlyHint", verified=False),
            ["3", "4"],
        ),
    ],
)
def test_a_remote_server_is_asked_in_two_sessions(
    run: Callable[..., Any], tools: Sequence[str], expected: Sharing, read: Sequence[str]
) -> None:
    remote = Listening.start("tests.plugins.mcp.servers.hinted", *tools)
    try:
        found = run(Http(url=f"http://127.0.0.1:{remote.port}/mcp"), tools[0], trials=2)
    finally:
        remote.stop()

    assert (expected, read, 0) == found


def test_a_server_that_is_there_once_is_shared_and_the_report_says_that_nobody_knows(
    hinted: Callable[..., Stdio], run: Callable[..., Any]
) -> None:
    sharing, read, _ = run(hinted("alone"), "alone", trials=2)

    assert ["I am alone"] * 2 == read
    assert (True, False) == (sharing.shared, sharing.verified)
    told = "every tool is read-only by its hint, and no second process came up to try that: server 'it' did not come up"
    assert sharing.why.startswith(told)


NEEDS = {"type": "object", "required": ["a"]}
REFERRED = {"$defs": {"place": {"type": "object", "properties": {"city": {"const": "Oslo"}}, "required": ["city"]}}}
NESTED = {"type": "object", "properties": {"b": {"enum": ["x", "y"]}, "c": {}}, "required": ["b"]}


def _needing(schema: Any, **more: Any) -> dict[str, Any]:
    return {**NEEDS, "properties": {"a": schema}, **more}


ASKED: list[tuple[dict[str, Any], Any]] = [
    ({"type": "object", "properties": {"a": {"type": "string"}}}, {}),
    (_needing({"type": "string", "examples": ["Oslo", "Rome"]}), {"a": "Oslo"}),
    (_needing({"type": "string", "example": "Oslo"}), {"a": "Oslo"}),
    (_needing({"type": "integer", "default": 3}), {"a": 3}),
    (_needing({"enum": ["x", "y"]}), {"a": "x"}),
    (_needing({"type": "boolean"}), {"a": False}),
    (_needing({"anyOf": [{"type": "string"}, {"type": "null"}]}), {"a": None}),
    (_needing({"type": ["integer", "null"]}), {"a": None}),
    (_needing(NESTED), {"a": {"b": "x"}}),
    (_needing({"type": "array", "items": NESTED, "minItems": 2}), {"a": [{"b": "x"}, {"b": "x"}]}),
    (_needing({"type": "array", "items": {"const": 1}}), {"a": [1]}),
    (_needing({"$ref": "#/$defs/place"}, **REFERRED), {"a": {"city": "Oslo"}}),
    (_needing({"allOf": [{"$ref": "#/$defs/place"}, {"type": "object"}]}, **REFERRED), {"a": {"city": "Oslo"}}),
    (_needing({"type": "string"}, examples=[{"a": "Oslo"}]), {"a": "Oslo"}),
    ({"type": "object", "properties": {"a": {"const": 1}, "b": {"type": "string"}}, "minProperties": 1}, {"a": 1}),
    ({"type": "object", "properties": {"a": {"const": 1}}, "oneOf": [{"required": ["a"]}]}, {"a": 1}),
]


def test_tools_are_asked_what_their_schemas_name(
    hinted: Callable[..., Stdio], run: Callable[..., Any], calls: Callable[[], list[Any]]
) -> None:
    sharing, *_ = run(hinted(*(json.dumps(schema) for schema, _ in ASKED)), "tool_0")

    assert TRUSTED == sharing
    assert [arguments for _, arguments in ASKED] == [arguments for _, _, arguments in calls()[: len(ASKED)]]


@pytest.mark.parametrize(
    ("schema", "which"),
    [
        (_needing({"type": "string"}), "`a` of tool_1"),
        (NEEDS, "`a` of tool_1"),
        (_needing({"type": "integer", "minimum": 1}), "`a` of tool_1"),
        (_needing({"type": "array", "items": {"type": "string"}}), "`a` of tool_1"),
        (_needing({**NESTED, "required": ["c"]}), "`a` of tool_1"),
        (_needing({"$ref": "#/properties/a"}), "`a` of tool_1"),
        (_needing({"$ref": "https://example.com/schema"}), "`a` of tool_1"),
        (_needing({"type": "string", "default": 5}), "tool_1"),
        (_needing({"anyOf": [{"$ref": "#/properties/a"}] * 3}), "`a` of tool_1"),
        ({**NEEDS, "properties": ["a"]}, "tool_1"),
        ({**NEEDS, "required": [["a"]]}, "tool_1"),
        (_needing({"type": "array", "items": {"const": 1}, "minItems": "two"}), "tool_1"),
    ],
)
def test_a_tool_without_an_example_is_not_asked(
    hinted: Callable[..., Stdio],
    run: Callable[..., Any],
    calls: Callable[[], list[Any]],
    schema: dict[str, Any],
    which: str,
) -> None:
    sharing, _, processes = run(hinted("add", json.dumps(schema)), "add", trials=0)

    told = f"readOnlyHint could not be tried: the input schema has no example for {which}"
    assert Sharing(False, f"{told}; isolation: condition shares it") == sharing
    assert ([], 1) == (calls(), processes)


def test_only_offered_tools_are_asked_by_their_own_names(
    hinted: Callable[..., Stdio], run: Callable[..., Any], calls: Callable[[], list[Any]]
) -> None:
    changed = Intervention(without=("count",), rename={"add": "plus"})

    sharing, read, _ = run(hinted("add", "count"), "plus", interventions=(changed,))

    assert (TRUSTED, ["1 + 1 = 2"] * TRIALS) == (sharing, read)
    assert {"add"} == {tool for _, tool, _ in calls()}


def test_one_trial_needs_no_hint(
    hinted: Callable[..., Stdio], run: Callable[..., Any], calls: Callable[[], list[Any]]
) -> None:
    sharing, read, processes = run(hinted("count"), "count", trials=1)

    assert Sharing(False, "one trial is planned, for which no readOnlyHint is tried") == sharing
    assert (["1"], 1, 1) == (read, processes, len(calls()))
