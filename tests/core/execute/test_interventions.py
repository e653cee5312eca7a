"""Interventions on a context of several servers: a name must be that of a tool of one of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from keval.config.source import Source
from keval.errors import FieldError, PreflightError
from keval.execute.bringup.servers import changes_placed
from keval.plan.plan import ResolvedPlugin
from keval.records.interventions import Intervention
from keval.records.servers import ToolListing
from keval.seams.registry import components
from keval_mcp.derived_contexts import DerivedContexts

TEXT = "contexts:\n  docs: {from: base, without: [open, close]}\n"
CLOSE = FieldError((0, "without", 1), "the server has no tool 'close'; tools: search")
HINT = FieldError((0, "without", 1), "the server has no tool 'close'; did you mean 'closed'?")
OPEN = FieldError((0, "without", 0), "the server has no tool 'open'; tools: search")


def problems(tapped: Mapping[str, bool], *unmatched: tuple[FieldError, ...], tools: tuple[str, ...] = ("a",)) -> str:
    source = Source.parse(TEXT, "eval.yaml", Path())
    change = Intervention(without=("open", "close"))
    context = ResolvedPlugin(
        "docs", components("keval.contexts")[0], None, interventions=(change,), changed_at=(("contexts", "docs"),)
    )
    tool_listings = [ToolListing(name, tools, unmatched=found) for name, found in zip(tapped, unmatched, strict=True)]
    with pytest.raises(PreflightError) as raised, changes_placed(context, source):
        DerivedContexts().check(context, tool_listings, [name for name, is_tapped in tapped.items() if is_tapped])
    return "\n".join(raised.value.problems)


def test_a_name_that_one_server_has_is_none_of_the_others() -> None:
    told = problems({"one": True, "two": True}, (OPEN, CLOSE), (HINT,))

    assert "eval.yaml:2:38: the server has no tool 'close'; did you mean 'closed'?" == told


def test_servers_that_agents_connect_to_themselves_cannot_be_changed() -> None:
    told = problems({"one": True, "two": False}, (), ())

    assert told.startswith(
        "eval.yaml:2:3: agents connect to this server themselves, so nothing about it can be changed"
    )


def test_a_context_may_lose_all_tools_of_a_server_but_not_of_all() -> None:
    told = problems({"one": True, "two": True}, (), (), tools=())

    assert "eval.yaml:2:3: the context 'docs' would have no tool left; keep at least one" == told
