"""What the simulated model reads out of texts and results: spans, statements, follow-ups, envelopes, records."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from keval_gateway import ChatCall, ChatMessage, ChatRequest
from keval_simulator.conversation import understand
from keval_simulator.parameters import zone
from keval_simulator.results import Outcome, outcome, records
from keval_simulator.spans import spans
from keval_simulator.words import split_identifier


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("What's the weather in São Paulo and Rio de Janeiro?", {"name": ["São Paulo", "Rio de Janeiro"]}),
        ("What is Stockholm's forecast for Monday?", {"name": ["Stockholm"]}),
        ("Rome", {"initial": ["Rome"]}),
        ("Which train goes on 3 March 2026 at 3:30 pm?", {"date": ["2026-03-03"], "time": ["15:30"]}),
        ("From May 4th, 2025 to 2025-06-01", {"date": ["2025-05-04", "2025-06-01"]}),
        ("Is (3 + 4) * 2**16 more than sqrt(9)?", {"expression": ["(3 + 4) * 2**16", "sqrt(9)"]}),
        ("Order ORD-9 and #ff8800 at 10.20.0.0/22", {"id": ["ORD-9", "#ff8800"], "ip": ["10.20.0.0/22"]}),
        ("Convert 1,250.5 USD", {"number": ["1,250.5"], "code": ["USD"]}),
        ("Mail anna@x.org about https://x.org/a?b=1.", {"email": ["anna@x.org"], "url": ["https://x.org/a?b=1"]}),
        ("Read /a/b/notes.txt and plan.md in 'old box'", {"path": ["/a/b/notes.txt", "plan.md"], "quote": ["old box"]}),
        ("how much olive oil is left", {"phrase": ["much olive oil"]}),
        ("", {}),
    ],
)
def test_spans_are_found_by_kind(text: str, found: dict[str, list[str]]) -> None:
    read: dict[str, list[str]] = {}
    for each in spans(text):
        read.setdefault(each.kind, []).append(each.text)

    assert found == {kind: read.get(kind, []) for kind in found}
    assert text or not read


def test_a_span_knows_what_stands_beside_it() -> None:
    (order,) = [each for each in spans("Hello. What about order 4711 of today?") if each.kind == "number"]

    assert (4711, ("order", "about", "what"), ("of", "today")) == (order.number, order.before, order.after)
    assert [7.0, 5.0, 1250.0] == [each.number for each in spans("The 7th of five in 1,250") if each.kind == "number"]


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("<session_context>\nToday is Friday.\n</session_context>\nIs it dry in Rome?", "Is it dry in Rome?"),
        ("Is it dry in <b>Rome</b>?", "Is it dry in <b>Rome</b>?"),
        ("<system-reminder>\nBe brief.\n</system-reminder>", "<system-reminder>\nBe brief.\n</system-reminder>"),
        ("<answer>\nIt is.\n</answer>\nIs it?", "<answer>\nIt is.\n</answer>\nIs it?"),
        ("Is 3 < 4 and 5 > 2?", "Is 3 < 4 and 5 > 2?"),
    ],
)
def test_blocks_in_which_an_agent_tells_of_itself_are_not_the_question(text: str, question: str) -> None:
    assert question == understand(ChatRequest("gemini", "m", (ChatMessage("user", text),))).question


@pytest.mark.parametrize(
    ("said", "statements"),
    [
        (["I hate the cold."], ("I hate the cold.",)),
        (
            ["I love hiking.", "I no longer enjoy hiking; I prefer museums."],
            ("I no longer enjoy hiking; I prefer museums.",),
        ),
        (["Do I like rain?", "If I like rain, what then?", "I would like tea.", "People like me."], ()),
    ],
)
def test_what_users_say_of_themselves_is_kept_until_they_say_otherwise(
    said: list[str], statements: tuple[str, ...]
) -> None:
    request = ChatRequest("gemini", "m", tuple(ChatMessage("user", text) for text in said))

    assert statements == understand(request).statements


@pytest.mark.parametrize(
    ("question", "topic"),
    [
        ("And tomorrow?", "And tomorrow? How warm is it in Oslo?"),
        ("Rome", "Rome How warm is it in Oslo?"),
        ("Which trains go to Rome?", "Which trains go to Rome?"),
        ("Thank you!", "Thank you!"),
    ],
)
def test_a_follow_up_is_about_the_question_before(question: str, topic: str) -> None:
    history = (ChatMessage("user", "How warm is it in Oslo?"), ChatMessage("assistant", "Mild."))

    assert topic == understand(ChatRequest("gemini", "m", (*history, ChatMessage("user", question)))).topic


PEOPLE = ((1, "Ida"), (2, "Per"))
RECORD = {"city": "Oslo", "main": {"temp": -3.5}}
TEXT = orjson.dumps(RECORD).decode()


@pytest.mark.parametrize(
    "envelope",
    [
        RECORD,
        {"result": RECORD},
        {"result": TEXT},
        {"content": [{"type": "text", "text": TEXT}], "isError": False},
        {"content": [{"type": "text", "text": "see the structure"}], "structuredContent": RECORD},
        [{"type": "text", "text": TEXT}],
        {"output": TEXT},
    ],
)
def test_a_result_is_read_through_any_envelope(envelope: Any) -> None:
    read = outcome(ChatCall("f"), ChatMessage("tool", orjson.dumps(envelope).decode()))

    assert read.error is None
    assert ({}, [{"city": "Oslo", "main temp": -3.5}]) == records(read.data)


@pytest.mark.parametrize(
    "text",
    [
        '[{"id": 1, "name": "Ida"}, {"id": 2, "name": "Per"}]',
        '{"total": 2, "rows": [{"id": 1, "name": "Ida"}, {"id": 2, "name": "Per"}]}',
        '{"id": 1, "name": "Ida"}\n{"id": 2, "name": "Per"}',
        "[{'id': 1, 'name': 'Ida'}, {'id': 2, 'name': 'Per'}]",
        '[["id", "name"], [1, "Ida"], [2, "Per"]]',
        "id,name\n1,Ida\n2,Per",
        "| id | name |\n|---|---|\n| 1 | Ida |\n| 2 | Per |",
        orjson.dumps([{"type": "text", "text": f'{{"id": {at}, "name": "{name}"}}'} for at, name in PEOPLE]).decode(),
    ],
)
def test_records_are_read_in_many_forms(text: str) -> None:
    _, rows = records(outcome(ChatCall("f"), ChatMessage("tool", text)).data)

    assert [("1", "Ida"), ("2", "Per")] == [(str(row["id"]), row["name"]) for row in rows]


@pytest.mark.parametrize(
    "message",
    [
        ChatMessage("tool", "no such city", error=True),
        ChatMessage("tool", "Error executing tool x: no such city"),
        ChatMessage("tool", '{"error": "no such city"}'),
        ChatMessage("tool", '{"error": {"message": "no such city"}}'),
        ChatMessage("tool", '{"content": [{"type": "text", "text": "no such city"}], "isError": true}'),
    ],
)
def test_failures_are_told_from_results(message: ChatMessage) -> None:
    error = outcome(ChatCall("f"), message).error

    assert error is not None
    assert "no such city" in error


@pytest.mark.parametrize("data", [None, "", [], {}, {"hits": []}, "No section fits the query.", "nothing found"])
def test_a_result_may_have_nothing(data: Any) -> None:
    assert not Outcome(ChatCall("f"), data).useful
    assert Outcome(ChatCall("f"), {"hits": [], "total": 3}).useful


def test_results_are_paired_with_calls_by_id_or_else_by_name() -> None:
    calls = (ChatCall("f", {"city": "Oslo"}, "1"), ChatCall("f", {"city": "Rome"}, "2"))
    by_id = (ChatMessage("tool", "second", call_id="2"), ChatMessage("tool", "first", call_id="1"))
    by_name = (ChatMessage("tool", "first", name="f"), ChatMessage("tool", "second", name="f"))

    for results in (by_id, by_name):
        messages = (ChatMessage("user", "both?"), ChatMessage("assistant", calls=calls), *results)
        outcomes = understand(ChatRequest("gemini", "m", messages)).outcomes

        assert {"Oslo": "first", "Rome": "second"} == {each.call.arguments["city"]: each.data for each in outcomes}


def test_names_are_cut_into_words_and_places_have_time_zones() -> None:
    assert ["get", "user", "id", "v2"] == split_identifier("get_userId-v2")
    assert ("Europe/Helsinki", "America/New_York", "Atlantis") == (zone("Helsinki"), zone("new york"), zone("Atlantis"))
