"""What decides whether trials share a server: the config, the bundle, or the hints of the tools that are offered."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from keval.plugin import ServerSpec, Sharing
from keval.seams.contexts import WorkingFolder
from keval_mcp.providers import planned_sharing, sharing_of

READS = {"name": "read", "inputSchema": {}, "annotations": {"readOnlyHint": True}}
WRITES = {"name": "write", "inputSchema": {}, "annotations": {"readOnlyHint": False, "title": "Write"}}
SILENT = {"name": "silent", "inputSchema": {}}
LOCAL = ServerSpec("it", "stdio")
REMOTE = ServerSpec("it", "http", url="http://127.0.0.1:1")


@pytest.mark.parametrize(
    ("tools", "shared", "why"),
    [
        ([READS], True, "every tool is read-only"),
        ([READS, WRITES], False, "not read-only: write"),
        ([SILENT], False, "not read-only: silent"),
        ([{**SILENT, "name": str(number)} for number in range(5)], False, "not read-only: 0, 1, 2 and 2 more"),
    ],
)
def test_by_default_the_hints_of_all_tools_decide(tools: list[Any], shared: bool, why: str) -> None:
    assert planned_sharing(LOCAL) is None
    assert Sharing(shared, why) == sharing_of(LOCAL, tools)
    assert Sharing(shared, why, verified=shared) == sharing_of(REMOTE, tools), "a session is no process of its own"


@pytest.mark.parametrize(
    ("options", "planned"),
    [
        ({"isolation": "trial"}, Sharing(False, "isolation: trial")),
        ({"isolation": "condition"}, Sharing(True, "isolation: condition", verified=False)),
        ({"tap": False}, Sharing(False, "agents connect to it themselves (tap: false)")),
        ({"folder": WorkingFolder()}, Sharing(False, "each trial has a folder of its own")),
        ({"keeps_trials_apart": True}, Sharing(True, "it keeps trials apart by itself")),
        (
            {"keeps_trials_apart": True, "isolation": "condition"},
            Sharing(True, "it keeps trials apart by itself"),
        ),
        (
            {"keeps_trials_apart": True, "isolation": "condition", "folder": WorkingFolder()},
            Sharing(True, "it keeps trials apart by itself"),
        ),
    ],
)
def test_what_the_config_or_the_bundle_decides_needs_no_hints(options: dict[str, Any], planned: Sharing) -> None:
    server = attrs.evolve(LOCAL, **options)

    assert planned == planned_sharing(server) == sharing_of(server, [READS, WRITES])


def test_the_word_of_the_config_is_no_risk_where_nothing_can_be_changed() -> None:
    server = attrs.evolve(LOCAL, isolation="condition")

    assert Sharing(True, "isolation: condition", verified=True) == sharing_of(server, [READS])
