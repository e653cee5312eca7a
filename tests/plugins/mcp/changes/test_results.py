"""What interventions make of results: unreadable, of the same shape, and open to calls that follow from them."""

from __future__ import annotations

import ast
import asyncio
import base64
import json
import re
import struct
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given, strategies as st
from jsonschema import validate

from keval import Message, Sample
from keval.plugin import Intervention, TrialInfo
from keval.records.interventions import Faults, FixedResult, ResultChange
from keval_mcp.changes import CallOutcome, Changes, TrialChanges
from keval_mcp.server.session import Listing

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": {"type": "integer", "minimum": 1, "maximum": 99},
        "sky": {"enum": ["sunny", "cloudy", "rainy"]},
        "at": {"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$"},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "wind": {"type": "number"},
        "storm": {"type": "boolean"},
    },
    "required": ["id", "sky"],
    "additionalProperties": False,
}
DATA = {
    "id": 17,
    "sky": "rainy",
    "at": "2026-11-22T18:30:00Z",
    "note": "Take the tram to Kauppatori.",
    "wind": 12.5,
    "storm": True,
}
LISTING = Listing(
    (
        {"name": "look", "inputSchema": {"type": "object"}, "outputSchema": SCHEMA},
        {"name": "open", "inputSchema": {"type": "object"}},
    )
)
PROSE = "Issue #17 (key DOC-482-xa): Restart the gateway with `sudo reload gateway`, see https://docs.example/restart."


def text(said: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": said}]}


def trial(*results: ResultChange, sample: str = "a", question: str = "Why?", agent: str = "one") -> TrialChanges:
    info = TrialInfo(f"{agent}/c/{sample}/1", Sample(sample, question, history=(Message("user", "Hi"),)), agent, "c")
    return Changes.of([Intervention(results=each) for each in results], {}, LISTING).trial(seed=7, trial=info)


def called(
    changes: TrialChanges, result: Mapping[str, Any], tool: Any = "open", **arguments: Any
) -> tuple[CallOutcome, dict[str, Any]]:
    """Make a call that the server answers with `result`, and return its outcome and what the server got."""
    got: dict[str, Any] = {}

    async def send(name: str, given: Mapping[str, Any] | None) -> Mapping[str, Any]:
        got.update(given or {})
        return result

    return asyncio.run(changes.call(tool, arguments, send)), got


def said(outcome: CallOutcome) -> str:
    found: str = outcome.result["content"][0]["text"]
    return found


def test_scrambled_prose_has_its_shape_and_none_of_its_words() -> None:
    outcome, _ = called(trial("scrambled"), text(PROSE))

    def shape(prose: str) -> str:
        return re.sub(r"[A-Z]", "A", re.sub(r"[a-z]", "a", re.sub(r"\d", "0", prose)))

    def words(prose: str) -> set[str]:
        return {*re.findall(r"\w{3,}", prose.lower())} - {"https"}

    assert "scrambled" == outcome.changed
    assert shape(PROSE) == shape(said(outcome))
    assert set() == words(PROSE) & words(said(outcome))


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"anyOf": [schema]}
    return {"type": "object", "properties": {"place": schema}}


ENDLESS = {"type": "object", "properties": {"place": {"$ref": "#/properties/place"}}}


@pytest.mark.parametrize(
    "schema",
    [ENDLESS, nested(95), {"properties": {"place": {"pattern": "("}}}, {"type": "nothing"}, {"$ref": "#/nowhere"}],
    ids=["endless", "deep", "pattern", "type", "nowhere"],
)
def test_data_is_scrambled_whatever_the_schema_is(schema: dict[str, Any]) -> None:
    listing = Listing(({"name": "look", "inputSchema": {"type": "object"}, "outputSchema": schema},))
    changes = Changes.of([Intervention(results="scrambled")], {}, listing).trial(seed=7, trial=None)

    outcome, _ = called(changes, {"content": [], "structuredContent": {"place": "Kauppatori"}}, "look")

    made = outcome.result["structuredContent"]["place"]
    assert (10, True) == (len(made), made.lower() != "kauppatori")


SKY = {"anyOf": [{"const": "sunny"}, {"const": "rainy"}]}
DEFS = {"$defs": {"weather": {"properties": {"kind": {"const": "weather"}, "sky": SKY}}}}
UNION: dict[str, Any] = {
    "anyOf": [{"$ref": "#/$defs/weather"}, {"properties": {"kind": {"const": "error"}, "city": {"const": ""}}}]
}


@pytest.mark.parametrize(
    "schema", [{**DEFS, **UNION}, {**DEFS, "properties": {"days": {"items": UNION}}}], ids=["at its root", "in a list"]
)
def test_of_alternatives_only_what_tells_them_apart_stays(schema: dict[str, Any]) -> None:
    listing = Listing(({"name": "look", "inputSchema": {"type": "object"}, "outputSchema": schema},))
    changes = Changes.of([Intervention(results="scrambled")], {}, listing).trial(seed=7, trial=None)
    data: dict[str, Any] = {"kind": "weather", "city": "Helsinki", "sky": "sunny"}

    whole = {"days": [data]} if "properties" in schema else data
    outcome, _ = called(changes, {**text(json.dumps(whole)), "structuredContent": whole}, "look")

    made = outcome.result["structuredContent"]
    validate(made, schema)
    assert made == json.loads(said(outcome))
    made = made["days"][0] if "days" in made else made
    assert ("weather", "sunny", False) == (made["kind"], made["sky"], made["city"] == "Helsinki")


def test_where_no_scrambled_data_fits_there_is_none() -> None:
    schema = {"not": {"not": {"properties": {"place": {"pattern": "^Kauppatori$"}}}}}
    listing = Listing(({"name": "look", "inputSchema": {"type": "object"}, "outputSchema": schema},))
    changes = Changes.of([Intervention(results="scrambled")], {}, listing).trial(seed=7, trial=None)

    outcome, _ = called(changes, {**text("Kauppatori"), "structuredContent": {"place": "Kauppatori"}}, "look")

    assert ({"content"}, False) == ({*outcome.result}, said(outcome) == "Kauppatori")


def test_a_text_of_deep_json_is_scrambled_as_prose() -> None:
    outcome, _ = called(trial("scrambled"), text("[" * 900 + '"Kauppatori"' + "]" * 900))

    assert (1812, False) == (len(said(outcome)), "Kauppatori" in said(outcome))


def test_scrambled_data_is_valid_and_its_text_says_the_same() -> None:
    result = {**text(json.dumps(DATA, indent=2)), "structuredContent": DATA, "_meta": {"note": "Kauppatori"}}

    outcome, _ = called(trial("scrambled"), result, "look")

    data = outcome.result["structuredContent"]
    validate(data, SCHEMA)
    assert data == json.loads(said(outcome))
    assert [*DATA] == [*data]
    assert ["id", "sky"] == [key for key in ("id", "sky", "at", "note", "wind") if data[key] == DATA[key]]
    assert len(json.dumps(DATA)) == pytest.approx(len(json.dumps(data)), abs=3)
    assert "_meta" not in outcome.result


def test_bounded_numbers_and_listed_words_agree_in_both_copies() -> None:
    hour = {"type": "integer", "minimum": 10, "maximum": 23}
    part = {"$ref": "#/$defs/Part"}
    schema = {"type": "object", "properties": {"result": {"type": "array", "items": part}}}
    state = {"type": "string", "enum": ["open", "closed"]}
    schema["$defs"] = {"Part": {"type": "object", "properties": {"hour": hour, "state": state}}}
    listing = Listing(({"name": "look", "inputSchema": {"type": "object"}, "outputSchema": schema},))
    changes = Changes.of([Intervention(results="scrambled")], {}, listing).trial(seed=7, trial=None)
    parts = [{"hour": 10 + n, "state": "open", "ok": True, "name": "Kauppatori"} for n in range(8)]
    blocks = [{"type": "text", "text": json.dumps(each, indent=2)} for each in parts]

    made = called(changes, {"content": blocks, "structuredContent": {"result": parts}}, "look")[0].result

    validate(made["structuredContent"], schema)
    others = made["structuredContent"]["result"]
    assert others == [json.loads(each["text"]) for each in made["content"]]
    assert {("open", True)} == {(each["state"], each["ok"]) for each in others}
    assert [] == [part for part, other in zip(parts, others, strict=True) if part["hour"] == other["hour"]]


BOUNDED = [
    ({"type": "number", "minimum": 0, "maximum": 1}, 0.85),
    ({"type": "number", "exclusiveMinimum": -1, "exclusiveMaximum": 0}, -0.2),
    ({"type": "integer", "minimum": -40, "maximum": -10}, -17),
    ({"type": "integer", "multipleOf": 5, "maximum": 100}, 35),
    ({"anyOf": [{"type": "number", "maximum": 5}, {"type": "null"}]}, 4.5),
]


@pytest.mark.parametrize(("bounds", "value"), BOUNDED)
def test_a_bounded_number_becomes_another_within_its_bounds(bounds: dict[str, Any], value: float) -> None:
    part = {"properties": {"score": bounds, "level": {"enum": [1, 2, 3]}, "other": {"type": "integer"}}}
    schema = {"type": "object", "properties": {"part": {"$ref": "#/$defs/Part"}}, "$defs": {"Part": part}}
    listing = Listing(({"name": "look", "inputSchema": {"type": "object"}, "outputSchema": schema},))
    made = set()
    for seed in range(20):
        changes = Changes.of([Intervention(results="scrambled")], {}, listing).trial(seed=seed, trial=None)
        result = {"content": [], "structuredContent": {"part": {"score": value, "level": 2, "other": 2}}}

        other = called(changes, result, "look")[0].result["structuredContent"]

        validate(other, schema)
        assert (type(value), len(str(value))) == (type(other["part"]["score"]), len(str(other["part"]["score"])))
        made.add(("score", other["part"]["score"] == value))
        made |= {("level", other["part"]["level"]), ("other", other["part"]["other"] == 2)}

    # What is listed under one key is not listed under others.
    assert {("score", False), ("level", 2), ("other", False)} <= made
    assert {("score", True), ("level", 1), ("level", 3)}.isdisjoint(made)


WRITTEN = [
    json.dumps(DATA),
    json.dumps(DATA, separators=(",", ":")) + "\n",
    "\n  " + json.dumps([DATA, {"näin": "ä", "leer": []}], indent=3),
    json.dumps({"näin": "ä", "in it": json.dumps({"in that": [True, None, "Kauppatori"]})}, ensure_ascii=False),
    json.dumps({"success": True, "n": 12}) + "\n" + json.dumps({"success": False, "n": 34}) + "\n",
    'Found:\n```json\n{"success": true,  "place" : "Kauppatori"}\n```\nDone',
    'Result: {"success": true, "place": "Kauppatori"}',
    "[{'id': 12, 'place': 'Kauppatori', 'open': True, 'until': None}]",
]


def shape(value: Any) -> Any:
    """Return what a placebo keeps of data: all but the words and digits."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shape(item) for item in value]
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        return shape(ast.literal_eval(value) if value.startswith("[{'") else json.loads(value))
    return value if value is None or isinstance(value, bool) else (type(value), len(str(value)))


@pytest.mark.parametrize("written", WRITTEN)
def test_json_in_a_text_result_keeps_all_but_its_information_in_both_copies(written: str) -> None:
    outcome, _ = called(trial("scrambled"), {**text(written), "structuredContent": {"result": written}}, "open")

    made = said(outcome)
    assert {"result": made} == outcome.result["structuredContent"]
    assert len(written) == len(made)
    assert written != made
    assert "Kauppatori" not in made
    pattern = r'["\'][^"\']*["\'](?=\s*:)|[Tt]rue|false|null|None|[\s{}\[\],]'
    assert re.findall(pattern, written) == re.findall(pattern, made)
    if written.strip()[0] in "{[" and "}\n{" not in written:
        assert shape(written) == shape(made)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text("abc äöü-1", max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("kxä", max_size=4), inner, max_size=4),
    max_leaves=20,
)


@given(JSON, st.sampled_from([None, 1, 2]), st.booleans())
def test_a_placebo_of_any_json_has_its_shape(data: Any, indent: int | None, ascii_only: bool) -> None:
    blocks = data if isinstance(data, list) else [data]
    texts = [
        item if isinstance(item, str) else json.dumps(item, indent=indent, ensure_ascii=ascii_only) for item in blocks
    ]
    result = {"content": [text(each)["content"][0] for each in texts], "structuredContent": {"result": data}}

    made = called(trial("scrambled"), result, "open")[0].result

    other = made["structuredContent"]["result"]
    assert shape(data) == shape(other)
    others = other if isinstance(data, list) else [other]
    for item, block in zip(others, made["content"], strict=True):
        assert block["text"] == (
            item if isinstance(item, str) else json.dumps(item, indent=indent, ensure_ascii=ascii_only)
        )


@pytest.mark.parametrize(
    ("value", "form"),
    [
        ("3f2b8c1e-9d4a-4f6b-8a2c-1e5d7f9b0c3a", r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}"),
        ("7ef184759723d2d26fcb6aad41e41e5862bc0d1a", r"[0-9a-f]{40}"),
        ("https://docs.example/restart?id=12", r"https://[a-z]+\.[a-z]+/[a-z]+\?[a-z]+=\d\d"),
        ("jane.doe@mail.example", r"[a-z]+\.[a-z]+@[a-z]+\.[a-z]+"),
        ("2026-11-22T18:30:00Z", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"),
        ("2026-11", r"\d{4}-(0\d|1[0-2])"),
        ("#3b82f6", r"#[0-9a-f]{6}"),
    ],
)
def test_an_id_keeps_its_form_and_leads_back(value: str, form: str) -> None:
    changes = trial("scrambled")

    made = json.loads(said(called(changes, text(json.dumps({"of": value, "orderId": value})), "open")[0]))

    assert re.fullmatch(form, made["of"])
    assert (value, False) == (made["orderId"], made["of"] == value)
    for passed in made.values():
        assert {"id": value} == called(changes, text(""), id=passed)[1]


def test_scrambling_is_the_same_for_a_trial_of_every_arm_and_another_for_another_sample() -> None:
    first = called(trial("scrambled"), text(PROSE))[0]

    assert first == called(trial("scrambled", agent="two"), text(PROSE))[0]
    assert said(first) != said(called(trial("scrambled", sample="b"), text(PROSE))[0])


@pytest.mark.parametrize(
    ("found", "argument", "expected"),
    [
        (r"key (\S+)\)|\((?:\w+) (\S+)\)", "key", "DOC-482-xa"),
        (r"#(\d+)", "issue_number", 17),
        (r"(https://[\w./]+)\.", "url", "https://docs.example/restart"),
        (r"`(\w+ \w+ \w+)`", "command", "sudo reload gateway"),
    ],
)
def test_what_an_agent_read_is_the_servers_own_again_in_the_next_call(
    found: str, argument: str, expected: str | int
) -> None:
    changes = trial("scrambled")
    outcome, _ = called(changes, text(PROSE))
    match = re.search(found, said(outcome))
    assert match is not None
    read = next(group for group in match.groups() if group)

    _, got = called(changes, text("yes"), **{argument: int(read) if isinstance(expected, int) else read})

    assert {argument: expected} == got


def test_ids_in_data_lead_back_wherever_they_are_passed() -> None:
    changes = trial("scrambled")
    data = {"items": [{"id": 7, "slug": "fi"}, {"id": 8, "slug": "se-north"}], "cursor": "eyJvIjoxMH0="}
    outcome, _ = called(changes, text(json.dumps(data)))
    read = json.loads(said(outcome))

    _, got = called(
        changes,
        text("yes"),
        item_id=read["items"][0]["id"],
        filter={"slugs": [item["slug"] for item in read["items"]]},
        cursor=read["cursor"],
    )

    assert {"item_id": 7, "filter": {"slugs": ["fi", "se-north"]}, "cursor": "eyJvIjoxMH0="} == got


def test_what_an_agent_says_of_its_own_reaches_the_server_as_it_is() -> None:
    question = "What's the weather in Oslo on 2026-11-24, in 3 days? Look at most 10 up, please: alpha beta gamma."
    changes = trial("scrambled", question=question)
    for number in range(30):
        called(changes, text(f"{number} pages of town {number:04}, {'abcdefghij'[number % 10] * 4}"))

    own = {"city": "Oslo", "day": "2026-11-24", "days": 3, "limit": 10, "query": "alpha beta gamma", "page": 2}
    _, got = called(changes, text("yes"), **own)

    assert own == got


def test_no_scrambled_number_is_one_that_the_question_has() -> None:
    rooms = [111, 222, 333, 444, 555]
    changes = trial("scrambled", question=f"Which of the rooms {rooms} is free?")
    called(changes, text(json.dumps({"rooms": [*range(100, 1000)]})))

    _, got = called(changes, text("yes"), rooms=rooms)

    assert {"rooms": rooms} == got


def test_an_error_stays_readable_without_what_the_server_was_told_in_its_own_words() -> None:
    changes = trial("scrambled")
    read = said(called(changes, text("frobnicator"))[0])

    outcome, got = called(changes, {**text("no page 'frobnicator' is there"), "isError": True}, page=read)

    assert {"page": "frobnicator"} == got
    assert (f"no page '{read}' is there", True) == (said(outcome), outcome.result["isError"])


def test_pictures_and_sounds_say_nothing_either() -> None:
    png = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 320, 200) + b"secret"
    blocks = [
        {"type": "image", "mimeType": "image/jpeg", "data": base64.b64encode(png).decode()},
        {"type": "audio", "mimeType": "audio/mpeg", "data": base64.b64encode(bytes(range(100))).decode()},
        {"type": "resource_link", "uri": "file:///tmp/secret.txt", "name": "secret"},
        {"type": "resource", "resource": {"uri": "file:///tmp/secret.txt", "text": "secret", "mimeType": "text/plain"}},
    ]

    outcome, _ = called(trial("scrambled"), {"content": blocks})

    image, audio, link, resource = outcome.result["content"]
    drawn, silence = base64.b64decode(image["data"]), base64.b64decode(audio["data"])
    assert ("image/png", (320, 200)) == (image["mimeType"], struct.unpack(">II", drawn[16:24]))
    assert ("audio/wav", b"RIFF", {0x80}) == (audio["mimeType"], silence[:4], {*silence[44:]})
    assert ("file:///", "file:///") == (link["uri"][:8], resource["resource"]["uri"][:8])
    assert "secret" not in json.dumps(outcome.result)


@pytest.mark.parametrize(
    ("change", "content", "kind"),
    [("empty", [], "empty"), (FixedResult("Nothing."), [{"type": "text", "text": "Nothing."}], "fixed")],
)
def test_results_without_information(change: ResultChange, content: list[Any], kind: str) -> None:
    result = {**text(PROSE), "structuredContent": DATA, "_meta": {"a": PROSE}}

    outcome, _ = called(trial(change), result, "look")

    assert ({"content": content}, kind) == (outcome.result, outcome.changed)


@pytest.mark.parametrize("change", ["empty", "scrambled", FixedResult("Nothing.")])
def test_a_failed_call_stays_one(change: ResultChange) -> None:
    failed = {**text("no such city"), "isError": True}

    outcome, _ = called(trial(change), failed)

    assert (failed, None) == (outcome.result, outcome.changed)


def test_changes_of_results_compose() -> None:
    outcome, _ = called(trial(FixedResult("Nothing here."), "scrambled"), text(PROSE))

    assert re.fullmatch(r"[A-Z][a-z]{6} [a-z]{4}\.", said(outcome))
    assert "Nothing here." != said(outcome)


def flaky(share: float, sample: str = "a", agent: str = "one", seed: int = 7) -> Callable[..., CallOutcome]:
    info = TrialInfo(f"{agent}/c/{sample}/1", Sample(sample, "Why?"), agent, "c")
    changes = Changes.of([Intervention(faults=Faults(error=share, seed=seed))], {}, LISTING).trial(trial=info)
    return lambda **arguments: called(changes, text("fine"), **arguments)[0]


def test_the_share_of_calls_that_fail_is_about_the_one_asked_for() -> None:
    failed = [flaky(0.2, f"s{number}")(q="x").error_kind == "injected" for number in range(500)]

    assert 0.2 == pytest.approx(sum(failed) / len(failed), abs=0.05)


def test_which_calls_fail_does_not_depend_on_their_order_or_their_agent() -> None:
    first, second = flaky(0.5), flaky(0.5, agent="two")
    forth = {number: first(q=number).sent for number in range(40)}
    back = {number: second(q=number).sent for number in reversed(range(40))}

    assert forth == back
    assert {True, False} == {*forth.values()}
    assert forth != {number: flaky(0.5, seed=8)(q=number).sent for number in range(40)}


def test_a_call_that_is_made_again_is_drawn_again() -> None:
    call = flaky(0.5)

    assert {True, False} == {call(q="the same").sent for _ in range(20)}


def test_a_call_that_fails_on_purpose_does_not_reach_the_server() -> None:
    info = TrialInfo("t", Sample("a", "Why?"), "one", "c")
    changes = Changes.of([Intervention(faults=Faults(error=1.0))], {}, LISTING).trial(trial=info)

    outcome, got = called(changes, text("fine"), q="x")

    assert ({}, False, "injected", True) == (got, outcome.sent, outcome.error_kind, outcome.result["isError"])
