"""Equal calls of a server that trials share: whose results are compared, and whose are not."""

from __future__ import annotations

from typing import Any

import pytest

from keval import Sample, Transcript
from keval.records.manifest import AgentEntry, ConditionEntry, DatasetEntry, Manifest, ServerEntry
from keval.records.servers import KEEPS_TRIALS_APART
from keval.records.transcript import ToolCall
from keval.records.trial import Trial
from keval_analysis.findings.summary import UnlikeCalls
from keval_analysis.stats.summarise import summarise


def call(result: str, name: str = "get", server: str = "store", **more: Any) -> ToolCall:
    return ToolCall(name, **{"arguments": {"key": "a"}, "result": result, "server": server, **more})


def unlike(*trials: tuple[ToolCall, ...], shared: bool = True, sharing: str = "isolation: condition") -> Any:
    servers = {"store": ServerEntry(("get",), "d", shared=shared, sharing=sharing)}
    manifest = Manifest(
        run="r",
        evaluation="e",
        config={},
        config_folder="/",
        dataset=DatasetEntry("questions.jsonl"),
        agents={"ada": AgentEntry("ada")},
        conditions={"it": ConditionEntry(("store",), servers)},
        trials=len(trials),
        baseline="it",
    )
    told = [
        Trial(f"t{number}", Sample("s", "?"), "ada", "it", number, Transcript(tool_calls=calls))
        for number, calls in enumerate(trials)
    ]
    return summarise(manifest, {"s": 0}, told, []).unlike_calls


@pytest.mark.parametrize(
    ("trials", "expected"),
    [
        ([(call("1"),), (call("2"),), (call("1"),)], (1, 2)),
        ([(call("1"), call("2")), (call("1"), call("2"))], None),
        ([(call("1"), call("2")), (call("3"), call("2"))], (1, 2)),
        ([(call("1"),), (call("2", arguments={"key": "b"}),)], None),
        ([(call("1"),), (call("2", arguments={"key": "a", "more": None}),)], (1, 1)),
        ([(call("1", arguments={"a": 1, "b": 2}),), (call("2", arguments={"b": 2, "a": 1}),)], (1, 1)),
        ([(call("1"),), (call("2", name="renamed", tool="get"),)], (1, 1)),
        ([(call("1"),), (call("2", name="find"),)], None),
        ([(call("1"),), (call("2", server="another"),)], None),
        ([(call("1", server="another"),), (call("2", server="another"),)], None),
        ([(call("1"),), (call("2", changed="scrambled"),)], None),
        ([(call("1"),), (call("2", error="no such key"),)], None),
    ],
)
def test_equal_calls_of_different_trials_are_compared(trials: Any, expected: tuple[int, int] | None) -> None:
    found = unlike(*trials)

    assert (() if expected is None else (UnlikeCalls("store", "get", *expected),)) == found


@pytest.mark.parametrize("entry", [{"shared": False}, {"sharing": KEEPS_TRIALS_APART}])
def test_trials_that_are_kept_apart_may_differ(entry: dict[str, Any]) -> None:
    assert () == unlike((call("1"),), (call("2"),), **entry)
