"""The simulated model as the writer of questions: plain calls, and plain questions about what they return."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from keval_gateway import ChatMessage, ChatRequest, ChatTool
from keval_simulator.model import SimulatedModel

TEXT = {"type": "string"}
CALLS = {"calls": {"type": "array", "items": {"type": "object", "properties": {"tool": TEXT, "arguments": TEXT}}}}
QUESTION = {"question": TEXT, "answer": TEXT, "calls": {"type": "array"}, "evidence": TEXT}
UNANSWERABLE = {"question": TEXT, "sought": {"type": "array"}, "calls": {"type": "array"}}
SEARCH = {"name": "search", "description": "Search the handbook.", "parameters": {"required": ["query"]}}
READ = {"name": "read", "description": "Read a page.", "parameters": {"required": ["page"]}}
FOUND = ("search", {"query": "handbook"}, "page: limits\n\npage: ports")
LIMITS = ("read", {"page": "limits"}, "A pool holds up to 40 links at a time.\nShort: 3.")


def described(tool: dict[str, Any], **parameters: Any) -> dict[str, Any]:
    names = tool["parameters"]["required"]
    return {
        **tool,
        "parameters": {"properties": {name: parameters.get(name, TEXT) for name in names}, "required": names},
    }


def asked(
    properties: dict[str, Any],
    *made: tuple[str, dict[str, Any], str],
    about: str = "",
    known: str = "",
    tools: Sequence[dict[str, Any]] = (SEARCH, READ),
    **more: Any,
) -> Any:
    """What the model replies about these tools, after these calls."""
    listed = "\n".join(json.dumps(described(tool, **more)) for tool in tools)
    sections = {"tools": listed, "about": about, "asked_already": known}
    sections |= {f"call_{at}": f"{tool} {json.dumps(given)}\n{text}" for at, (tool, given, text) in enumerate(made, 1)}
    fences = [f"<{label}-0a1b2c3d>\n{text}\n</{label}-0a1b2c3d>" for label, text in sections.items() if text]
    schema = {"type": "object", "properties": properties}
    message = ChatMessage("user", "\n\n".join(["The code is 0a1b2c3d.", *fences, "Reply."]))
    reply = SimulatedModel(seed=1)(ChatRequest("openai-chat", "judge", (message,), response_schema=schema))
    return json.loads(reply.text)


def test_what_nobody_names_is_any_text_and_what_a_person_names_is_taken() -> None:
    needs_path = {**SEARCH, "parameters": {"required": ["path"], "properties": {"path": TEXT}}}

    told = [calls(about=about, tools=[needs_path]) for about in ("", "The files are in /srv/files.")]

    assert [[("search", {"path": "text"})], [("search", {"path": "/srv/files"})]] == told


def test_a_tool_that_must_be_called_takes_what_is_asked_for() -> None:
    message = ChatMessage("user", f"<tools-0a1b2c3d>\n{json.dumps(described(SEARCH))}\n</tools-0a1b2c3d>")
    tool = ChatTool("reply", "Gives your reply.", {"type": "object", "properties": CALLS, "required": ["calls"]})
    request = ChatRequest("openai-chat", "judge", (message,), tools=(tool,), forced_tool="reply")

    (call,) = SimulatedModel(seed=1)(request).calls

    assert ["search"] == [each["tool"] for each in call.arguments["calls"]][:1]


def questions(*made: tuple[str, dict[str, Any], str], entry: dict[str, Any] = QUESTION, known: str = "") -> Any:
    array = {"type": "array", "items": {"type": "object", "properties": entry}}
    return asked({"questions": array}, *made, known=known)["questions"]


def calls(*made: tuple[str, dict[str, Any], str], **more: Any) -> list[tuple[str, dict[str, Any]]]:
    return [(call["tool"], json.loads(call["arguments"])) for call in asked(CALLS, *made, **more)["calls"]]


def test_calls_take_what_results_and_descriptions_name() -> None:
    first = calls()
    second = calls(FOUND)

    assert [("search", {"query": "Search"})] == first[:1]
    assert [] == [call for call in first if call[0] == "read"]
    assert [("read", {"page": "limits"}), ("read", {"page": "ports"})] == [call for call in second if call[0] == "read"]
    assert ("search", {"query": "handbook"}) not in second


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({**TEXT, "enum": ["a", "b"]}, ["a", "b"]),
        ({**TEXT, "description": "A zone (e.g., 'Asia/Tokyo')."}, ["Asia/Tokyo"]),
        ({**TEXT, "description": "A date."}, ["2026-01-15", "2026-07-15"]),
        ({"type": "integer", "default": 3}, [3]),
        ({"type": "integer", "minimum": 2, "maximum": 2}, [2]),
    ],
)
def test_calls_take_what_the_schema_of_a_parameter_names(schema: dict[str, Any], expected: list[Any]) -> None:
    assert expected == [given["page"] for tool, given in calls(page=schema) if tool == "read"]


def test_a_text_becomes_questions_about_what_is_left_out_with_the_search_that_led_to_it() -> None:
    (found,) = (each for each in questions(FOUND, LIMITS) if "left out" in each["question"])

    assert {
        "question": 'What is left out in "A pool holds up to ___ links at a time."?',
        "answer": "40",
        "calls": [1, 2],
        "evidence": "A pool holds up to 40 links at a time.",
    } == found
    assert found not in questions(FOUND, LIMITS, known=found["question"])


def test_a_record_becomes_questions_about_its_values() -> None:
    found = questions(("read", {"page": "oslo"}, '{"temp": -3.5, "sky": "clear", "hours": [1]}'))

    assert {
        ("What is the temp for oslo?", "The temp is -3.5.", 'temp": -3.5'),
        ("What is the sky for oslo?", "The sky is clear.", 'sky": "clear'),
    } == {(each["question"], each["answer"], each["evidence"]) for each in found}


def test_a_list_becomes_questions_about_what_is_in_it_and_about_each_record() -> None:
    ships = [{"name": "Marigold", "tons": 412, "decks": ["A", "B"]}, {"name": "Kestrel", "tons": 31, "decks": ["A"]}]
    records = questions(("list_ships", {}, json.dumps({"ships": ships})))
    names = questions(("list_tables", {}, '[{"table": "ships"}, {"table": "tides"}]'))
    nothing = questions(("search", {"query": "green light"}, "No matches found"))
    line = questions(("show", {"path": "/srv/a"}, "Author: Ada Quill\nDate: monday"))

    assert {
        ("What is the tons of Marigold?", "The tons is 412.", 'tons": 412'),
        ("What is the tons of Kestrel?", "The tons is 31.", 'tons": 31'),
        ("What are the decks of Marigold?", "A, B", 'A", "B'),
        ("What are the decks of Kestrel?", "A", "A"),
    } == {(each["question"], each["answer"], each["evidence"]) for each in records}
    assert [("What are all the results of list tables?", "ships, tides")] == [
        (each["question"], each["answer"]) for each in names
    ]
    assert [] == nothing
    assert ("What is the author for /srv/a?", "Ada Quill") in [(each["question"], each["answer"]) for each in line]


def test_a_tool_that_changes_something_is_not_called_and_a_list_takes_what_results_name() -> None:
    opens = {"name": "open", "description": "Open.", "parameters": {"required": ["names"]}}
    deletes = {"name": "delete_all", "description": "Delete all.", "parameters": {"required": []}}
    found = ("search", {"query": "x"}, '[{"name": "Marigold"}, {"name": "Kestrel"}]')

    made = calls(found, tools=[opens, deletes], names={"type": "array", "items": TEXT})

    assert [("open", {"names": ["Marigold"]}), ("open", {"names": ["Kestrel"]})] == made


def test_unanswerable_questions_are_about_names_that_nobody_has() -> None:
    found = questions(FOUND, entry=UNANSWERABLE)

    assert 5 == len(found)
    assert all(each["sought"][0] in each["question"] for each in found)
    assert all(call["tool"] in ("search", "read") for each in found for call in each["calls"])
