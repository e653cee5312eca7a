"""What makes new trials unlike those that a run has: its servers may have come to be shared, or not to be."""

from __future__ import annotations

import attrs
import pytest

from keval.records.manifest import AgentEntry, ConditionEntry, DatasetEntry, Manifest, ServerEntry
from keval.run.resumption import changes


def manifest(shared: bool | None) -> Manifest:
    return Manifest(
        run="run",
        evaluation="it",
        config={},
        config_folder=".",
        dataset=DatasetEntry("q.jsonl"),
        agents={"agent": AgentEntry("agent")},
        conditions={"with": ConditionEntry(servers={"docs": ServerEntry(("read",), "digest", shared=shared)})},
        trials=1,
        baseline="with",
    )


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        (True, False, ["condition with: trials share docs: was True, is False"]),
        (True, True, []),
        (None, False, []),
    ],
)
def test_a_server_that_trials_no_longer_share_is_a_change(before: bool | None, now: bool, told: list[str]) -> None:
    assert told == [*changes(manifest(before), attrs.evolve(manifest(now), run="later"))], "older runs do not say"
