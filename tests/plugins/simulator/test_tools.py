"""The simulated model's way to use a tool, on made-up servers of many kinds: no server is known to it by name."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from tests.plugins.simulator.made_up import (
    ASKED,
    CALENDAR,
    FOLDER,
    GALLERY,
    HARBOUR,
    KITCHEN,
    NUMBER,
    SHOP,
    SQL,
    SUMS,
    TEXT,
    TIME,
    Served,
    ServerError,
    known,
    talk,
    tool,
)


@pytest.mark.parametrize("server", ASKED)
def test_questions_are_answered_out_of_what_tools_say(server: str) -> None:
    tools, asked = ASKED[server]

    answers = {question: talk(tools, question).answer for question in asked}

    assert {} == {question: answers[question] for question, value in asked.items() if value not in answers[question]}


@pytest.mark.parametrize(
    ("tools", "question", "calls"),
    [
        (
            HARBOUR,
            "What is the pull of ferrowick grindle?",
            [("tug", {"name": "ferrowick grindle"}), ("tug", {"name": "Grindle Ferrowick"})],
        ),
        (
            HARBOUR,
            "Compare Ostre Vane with Grindle Ferrowick",
            [("tug", {"name": "Ostre Vane"}), ("tug", {"name": "Grindle Ferrowick"})],
        ),
        (SHOP, "What is the status of order A-11?", [("get_order", {"order_id": "A-11"})]),
        (
            SHOP,
            "Which pending orders has Bo Larsen?",
            [
                ("search_customers", {"query": "Bo Larsen"}),
                ("list_orders", {"customer_id": "C-9", "status": "pending"}),
            ],
        ),
        (
            SUMS,
            "Convert 5 mile to kilometer",
            [("convert_units", {"value": 5, "from_unit": "mile", "to_unit": "kilometer"})],
        ),
        (SUMS, "What is the mean of 4, 8 and 15?", [("mean", {"numbers": [4, 8, 15]})]),
        (TIME, "What time is it in Tokyo?", [("get_current_time", {"timezone": "Asia/Tokyo"})]),
        (
            CALENDAR,
            "What is on from 4 March 2026 to 2026-03-05?",
            [("list_events", {"start_date": "2026-03-04", "end_date": "2026-03-05"})],
        ),
        (KITCHEN, "List the first 1 of the dessert recipes", [("list_recipes", {"category": "dessert", "limit": 1})]),
        (FOLDER, "Which files are in /data/box?", [("list_directory", {"path": "/data/box"})]),
        (SHOP, "Hello", []),
        (SHOP, "Thanks a lot!", []),
    ],
)
def test_arguments_are_spans_of_the_question_and_of_results(
    tools: list[Served], question: str, calls: list[Any]
) -> None:
    assert calls == talk(tools, question).calls


def test_calls_with_lists_are_no_statements() -> None:
    said = talk([*GALLERY, *SUMS], "What is the mean of 4, 8 and 15 for the painters?")

    assert ("mean", {"numbers": [4, 8, 15]}) in said.calls


def test_what_changes_something_is_called_only_if_it_is_asked_for() -> None:
    assert "cancel_order" not in dict(talk(SHOP, "Where is my order A-12?").calls)
    assert ["cancel_order"] == [name for name, _ in talk(SHOP, "Please cancel order A-12.").calls]


def test_a_verb_that_is_not_known_to_read_is_not_tried_beside_a_tool_that_reads() -> None:
    path, text = {"path": TEXT}, "Footnotes are small."
    customise = tool(lambda path: "done", "customize_footnote_style", "Customize the style of footnotes.", path, "path")
    read = tool(lambda path: text, "get_text", "Get the text of a document.", path, "path")

    asked = talk([customise, read], "Which style do the footnotes of rules.docx have?")
    ordered = talk([customise, read], "Please customize the style of the footnotes of rules.docx.")

    assert ["get_text"] == [name for name, _ in asked.calls]
    assert "customize_footnote_style" in dict(ordered.calls)


def test_where_a_statement_ends_is_tried() -> None:
    statement = "SELECT title FROM books WHERE year > 1980 and price < 20"
    run = tool(
        lambda query: str([{"title": known({statement: "Dry Dock"}, query, 'near "tell": syntax error')}]),
        "read_query",
        "Execute a SELECT query.",
        SQL,
        "query",
    )

    said = talk([run], f"Run {statement} and tell me what comes back.")
    quoted = talk([run], f"What does `{statement}` return?")

    assert [f"{statement} and tell me what comes back", statement] == [given["query"] for _, given in said.calls]
    assert [("read_query", {"query": statement})] == quoted.calls
    assert "Dry Dock" in said.answer


def test_a_value_that_nothing_has_is_asked_for() -> None:
    said = talk([HARBOUR[2]], "When is the tide high?")

    assert [] == said.calls
    assert "date" in said.answer
    assert "?" in said.answer


def test_a_number_out_of_bounds_is_put_within_what_the_error_says() -> None:
    def outlook(days: float) -> dict[str, float]:
        if not 1 <= days <= 5:
            raise ServerError(f"days must be between 1 and 5, not {days}")
        return {"days": days}

    said = talk(
        [tool(outlook, "outlook", "Outlook for some days.", {"days": NUMBER}, "days")],
        "What is the outlook for 30 days?",
    )

    assert [("outlook", {"days": 30}), ("outlook", {"days": 5})] == said.calls


def test_an_argument_that_an_error_asks_for_is_given() -> None:
    def rate(currency: str, region: str | None = None) -> dict[str, str]:
        if region is None:
            raise ServerError("missing argument: region")
        return {"rate": "1.5"}

    tools = [tool(rate, "get_rate", "Get a rate.", {"currency": TEXT, "region": TEXT}, "currency")]

    assert {"currency": "GBP", "region": "Kent"} == talk(tools, "What is the rate of GBP for Kent?").calls[-1][1]


def test_an_object_in_a_list_is_filled() -> None:
    point = {"type": "object", "properties": {"name": TEXT, "count": NUMBER}, "required": ["name", "count"]}
    schema = {"items": {"type": "array", "items": point}}

    said = talk(
        [tool(lambda items: {"total": 8}, "quote_parts", "Quote a price for parts.", schema, "items")],
        "Quote 4 of 'shackle'?",
    )

    assert [("quote_parts", {"items": [{"name": "shackle", "count": 4}]})] == said.calls


def test_errors_to_the_end_are_told_and_no_answer_is_made_up() -> None:
    said = talk([HARBOUR[2]], "When is high tide on 2031-01-01?")

    assert "I'm sorry, I couldn't get the data for 2031-01-01: date must be in YYYY-MM-DD." in said.answer


def test_a_pattern_that_python_cannot_read_forbids_nothing() -> None:
    code = {"type": "string", "pattern": r"^\\p{L}+(?<n>x)$"}

    said = talk(
        [tool(lambda code: {"title": "Fog Bell"}, "get_title", "Get a title by its code.", {"code": code}, "code")],
        "What is the title of K-9?",
    )

    assert [("get_title", {"code": "K-9"})] == said.calls


_TIED = """
from keval_gateway import ChatMessage, ChatRequest, ChatTool
from keval_simulator.model import SimulatedModel

def takes(name, about):
    return {"type": "object", "properties": {name: {"type": "string", "description": about}}, "required": [name]}

city = takes("city", "Name of the city, for example Helsinki, New York or Sao Paulo")
tools = [ChatTool(name, "", city) for name in ("get_current_weather", "get_weather_forecast")]
tools.append(ChatTool("update_user_preferences", "", takes("cold", "Whether the user dislikes cold weather")))
prompt = '''You help with the weather. The user's id is user-1.

You have weather tools: look up the current weather or the forecast before you state a figure, and look up or update
the user's preferences where they matter to the answer.

# MCP Server Instructions

The following MCP servers have provided instructions for how to use their tools and resources:

## weather

Current weather, forecasts and the user's weather preferences. All figures are metric.

How cold is it in New York at the moment?'''
request = ChatRequest("openai", "m", (ChatMessage("user", prompt),), "", tuple(tools))
print([call.name for call in SimulatedModel()(request).calls])
"""


def test_tools_that_fit_alike_are_called_in_the_order_in_which_they_are_offered_in_each_process() -> None:
    """The words of a question are a set, whose order is another in each process: it must not decide by its rounding."""
    answers = {
        subprocess.run(
            [sys.executable, "-c", _TIED],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in (0, 22, 38)
    }

    assert {"['get_current_weather']\n"} == answers
