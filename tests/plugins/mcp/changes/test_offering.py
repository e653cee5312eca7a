"""What agents are offered after interventions, and which tool of the server each offered one is."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from keval.plugin import Intervention, InterventionError
from keval.records.interventions import Describe, FixedResult, RecordedResults, ResultChange
from keval_mcp.changes import Changes
from keval_mcp.server.session import Listing

SEARCH = {
    "name": "search",
    "title": "Search",
    "description": "Find pages by words that they contain, best first.",
    "inputSchema": {"type": "object", "properties": {"query": {"type": "string", "description": "What to find."}}},
    "outputSchema": {"type": "object"},
    "icons": [{"src": "data:,"}],
}
OPEN = {"name": "open_page", "inputSchema": {"type": "object", "properties": {"id": {"type": "integer"}}}}
LISTING = Listing((SEARCH, OPEN), instructions="Search first.")


def offered(*interventions: Intervention, aliases: Mapping[str, str] | None = None) -> Changes:
    return Changes.of(interventions, aliases or {}, LISTING)


def test_what_is_not_changed_stays_as_the_server_wrote_it() -> None:
    changes = offered(Intervention())

    assert (LISTING, ()) == (changes.listing, changes.unmatched)


@pytest.mark.parametrize(
    ("intervention", "expected"),
    [
        (Intervention(tools=("open*",)), ("open_page",)),
        (Intervention(without=("open*",)), ("search",)),
        (Intervention(tools=("*",), without=("search",)), ("open_page",)),
        (Intervention(rename={"search": "find"}), ("find", "open_page")),
        (Intervention(rename={"search": "open_page", "open_page": "search"}), ("open_page", "search")),
    ],
)
def test_tools_are_chosen_and_renamed(intervention: Intervention, expected: tuple[str, ...]) -> None:
    assert expected == offered(intervention).listing.names


def test_words_change_and_nothing_else_does() -> None:
    words = Describe("Finds pages.", {"query": "Words to look for."})

    (search, _) = offered(Intervention(describe={"search": words})).listing.tools

    query = {"type": "string", "description": "Words to look for."}
    schema = {"type": "object", "properties": {"query": query}}
    assert {**SEARCH, "description": "Finds pages.", "inputSchema": schema} == search


def test_each_intervention_speaks_of_the_names_that_the_one_before_gives() -> None:
    renamed = Intervention(rename={"search": "find"}, describe={"search": Describe("Finds.")})

    changes = offered(renamed, Intervention(without=("open_page",), describe={"find": Describe("Finds pages.")}))

    assert [("find", "Finds pages.")] == [(tool["name"], tool["description"]) for tool in changes.listing.tools]
    assert {"find": "search"} == changes.names


@pytest.mark.parametrize(("told", "expected"), [(False, None), ("Open pages.", "Open pages."), (True, "Search first.")])
def test_instructions_are_hidden_or_replaced(told: bool | str, expected: str | None) -> None:
    assert expected == offered(Intervention(server_instructions=told)).listing.instructions


@pytest.mark.parametrize("results", ["empty", FixedResult("Nothing.")])
def test_a_tool_whose_results_have_no_data_declares_none(results: Any) -> None:
    changes = offered(Intervention(results=results))

    assert ["outputSchema" in tool for tool in changes.listing.tools] == [False, False]


@pytest.mark.parametrize("results", ["scrambled", RecordedResults(Path("run"))])
def test_a_tool_whose_results_keep_their_data_declares_it(results: ResultChange) -> None:
    assert "outputSchema" in offered(Intervention(results=results)).listing.tools[0]


def test_an_alias_is_for_the_name_alone() -> None:
    changes = offered(Intervention(rename={"search": "find"}), aliases={"find": "docs__find"})

    assert ("docs__find", "open_page") == changes.listing.names
    assert {"docs__find": "search", "open_page": "open_page"} == changes.names


@pytest.mark.parametrize(
    ("intervention", "expected"),
    [
        (
            Intervention(without=("search", "close_page")),
            ((0, "without", 1), "the server has no tool 'close_page'; did you mean 'open_page'?"),
        ),
        (
            Intervention(tools=("*page", "x*")),
            ((0, "tools", 1), "the server has no tool 'x*'; tools: search, open_page"),
        ),
        (
            Intervention(rename={"serch": "find"}),
            ((0, "rename", "serch"), "the server has no tool 'serch'; did you mean 'search'?"),
        ),
        (
            Intervention(without=("search",), describe={"search": Describe("Finds.")}),
            ((0, "describe", "search"), "the tool 'search' is left out here, so nothing else can be changed about it"),
        ),
        (
            Intervention(describe={"search": Describe(parameters={"words": "Words."})}),
            (
                (0, "describe", "search", "parameters", "words"),
                "the tool 'search' has no parameter 'words'; it has query",
            ),
        ),
    ],
)
def test_a_name_that_no_tool_has_is_told_with_its_path(intervention: Intervention, expected: tuple[Any, str]) -> None:
    assert [expected] == [(error.path, error.message) for error in offered(intervention).unmatched]


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(InterventionError) as raised:
        offered(Intervention(), Intervention(rename={"search": "open_page"}))

    (error,) = raised.value.errors
    assert (1, "rename", "search") == error.path
    assert "another tool, 'open_page', has the name 'open_page'; rename 'search' otherwise" == error.message


def test_a_call_reaches_the_server_under_its_own_name_and_what_is_left_out_does_not() -> None:
    trial = offered(Intervention(rename={"search": "find"}), Intervention(without=("open_page",))).trial()
    sent = []

    async def send(tool: str, arguments: Mapping[str, Any] | None) -> dict[str, Any]:
        sent.append((tool, arguments))
        return {"content": []}

    async def calls() -> list[Any]:
        return [await trial.call(name, {"query": "x"}, send) for name in ("find", "search", "open_page")]

    found, old, left_out = asyncio.run(calls())

    assert [("search", {"query": "x"})] == sent
    assert ("search", True) == (found.tool, found.sent)
    assert [("Unknown tool: search", True), ("Unknown tool: open_page", True)] == [
        (each.result["content"][0]["text"], each.result["isError"]) for each in (old, left_out)
    ]
