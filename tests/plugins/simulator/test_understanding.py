"""What the simulated model reads out of texts and results: places, preferences, numbers, envelopes."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from keval_gateway import ChatCall, ChatMessage, ChatRequest
from keval_simulator.conversation import (
    days_asked,
    flags_of,
    home_in,
    places_after_in,
    places_in,
    stated_in,
    states_preference,
    time_asked,
    understand,
)
from keval_simulator.tool_results import read
from keval_simulator.words import key_words, numbers, split_identifier


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("What's the weather in Helsinki?", ("Helsinki",)),
        ("How is it in New York and in São Paulo today?", ("New York", "São Paulo")),
        ("Is Łódź colder than Zürich?", ("Łódź", "Zürich")),
        ("Rio de Janeiro, please", ("Rio de Janeiro",)),
        ("Weather in Paris, France tomorrow", ("Paris",)),
        ("Compare Rome, Oslo and Cape Town", ("Rome", "Oslo", "Cape Town")),
        ("What is Stockholm's forecast for Monday?", ("Stockholm",)),
        ("Will it rain in Stratford-upon-Avon?", ("Stratford-upon-Avon",)),
        ("weather in new york", ("New York",)),
        ("What will I need on Saturday in June?", ()),
        ("What's the weather like in the morning?", ()),
        ("Convert 5 USD to EUR", ()),
        ("Lovely, thank you! Back to Rome: how is it there?", ("Rome",)),
        ("", ()),
    ],
)
def test_places_are_found_in_what_users_write(text: str, places: tuple[str, ...]) -> None:
    assert places_in(text) == places


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


def test_an_assistants_capitals_are_not_places_unless_it_is_in_them() -> None:
    assert places_after_in("Light rain in Oslo. Take Grandma's Umbrella.") == ("Oslo",)


def test_a_system_prompt_may_say_where_the_user_lives() -> None:
    assert home_in("You are helpful. The user lives in São Paulo. Answer in English.") == "São Paulo"
    assert home_in("Answer in English, in Celsius.") is None


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("I hate the cold.", {"dislikes_cold": True}),
        ("I really don't like the rain", {"dislikes_rain": True}),
        ("The user dislikes wind and prefers to be indoors.", {"dislikes_wind": True, "prefers_indoor": True}),
        ("I love sunny days and I enjoy hiking", {"prefers_sunny": True, "outdoor_activities": True}),
        ("{'dislikes_cold': True, 'dislikes_rain': False}", {"dislikes_cold": True, "dislikes_rain": False}),
        (
            '"outdoor_activities": ["hiking"], "prefers_sunny": true',
            {"outdoor_activities": True, "prefers_sunny": True},
        ),
        ('"outdoor_activities": []', {"outdoor_activities": False}),
        ("If the user says that they hate the cold, set dislikes_cold.", {}),
        ("I don't mind the rain, but I can't stand the cold.", {"dislikes_cold": True, "dislikes_rain": False}),
        ("She no longer dislikes the wind", {"dislikes_wind": False}),
        ("I don't hate hot weather, I hate rain", {"dislikes_heat": False, "dislikes_rain": True}),
        ("I no longer enjoy hiking; I prefer to be indoors", {"prefers_indoor": True, "outdoor_activities": False}),
        ("I'm not sensitive to the weather any more", {"sensitive_to_weather": False}),
    ],
)
def test_preferences_are_read_from_words_and_flags(text: str, flags: dict[str, bool]) -> None:
    assert stated_in(text) == flags


def test_only_the_users_own_statements_are_statements() -> None:
    assert states_preference("I hate the cold")
    assert states_preference("I don't mind the rain")
    assert not states_preference("Does anyone hate the cold?")
    assert not states_preference("What's the weather in Oslo?")


def test_flags_are_found_at_any_depth_of_a_result() -> None:
    result = {"user_id": "u", "preferences": {"dislikes_cold": True, "prefers_sunny": None}, "insights": [{"x": 1}]}

    assert flags_of(result) == {"dislikes_cold": True}


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("the next 3 days", 3),
        ("tomorrow", 2),
        ("this weekend", 5),
        ("on Saturday, two days from today", 5),
        ("for the next 30 days", 30),
        ("right now", None),
    ],
)
def test_days_are_counted_from_today(text: str, days: int | None) -> None:
    assert days_asked(text) == days


TOMORROW, NOW, SATURDAY = "Will it rain in Rome tomorrow?", "How is it in Rome now?", "And on Saturday?"


@pytest.mark.parametrize(
    ("said", "when"),
    [
        ((TOMORROW, "So what should I pack for it?"), TOMORROW),
        ((TOMORROW, "And in Oslo?", "Is an umbrella needed then?"), TOMORROW),
        ((TOMORROW, "Thanks!", "I hate the rain.", "What should I wear on that day? And that time?"), TOMORROW),
        ((TOMORROW, SATURDAY, "What about Oslo?"), SATURDAY),
        ((TOMORROW, NOW, "And in Oslo?"), NOW),
        ((TOMORROW, "What should I wear in Oslo?"), "What should I wear in Oslo?"),
        (("How long is a day?", "Thanks!"), "Thanks!"),
    ],
)
def test_a_question_that_leaves_the_time_open_is_about_the_time_before(said: tuple[str, ...], when: str) -> None:
    request = ChatRequest("gemini", "m", tuple(ChatMessage("user", text) for text in said))

    assert time_asked(understand(request)) == when


def test_words_and_numbers() -> None:
    assert split_identifier("getUserId_from-name") == ["get", "user", "id", "from", "name"]
    assert numbers("two or 3.5, not v2, but -4") == [2.0, 3.5, -4.0]
    assert key_words("How do I configure the retries?") == "configure retries"


REPORT = {"city": "Oslo", "temperature": -3.5, "wind_speed": 2, "main_condition": "Snow", "description": "light snow"}
TEXT = orjson.dumps(REPORT).decode()
ENVELOPES: list[Any] = [
    REPORT,
    {"result": REPORT},
    {"result": TEXT},
    {"content": [{"type": "text", "text": TEXT}], "isError": False},
    {"content": [{"type": "text", "text": "see the structure"}], "structuredContent": REPORT},
    [{"type": "text", "text": TEXT}],
    {"output": TEXT},
    {"weather": {"current": REPORT}},
]


@pytest.mark.parametrize("envelope", ENVELOPES)
def test_a_result_is_read_through_any_envelope(envelope: Any) -> None:
    reading = read(ChatMessage("tool", orjson.dumps(envelope).decode()))

    assert reading.error is None
    assert reading.current is not None
    assert (reading.current.city, reading.current.temperature) == ("Oslo", -3.5)
    assert reading.current.description == "light snow"


def test_openweathers_own_shape_is_understood() -> None:
    raw = {
        "name": "Rome",
        "main": {"temp": 12.5, "feels_like": 11, "humidity": 60},
        "weather": [{"main": "Clouds", "description": "few clouds"}],
        "wind": {"speed": 3.0},
    }

    current = read(ChatMessage("tool", orjson.dumps(raw).decode())).current

    assert current is not None
    assert (current.city, current.temperature, current.condition) == ("Rome", 12.5, "Clouds")


def test_a_forecast_is_read_day_by_day() -> None:
    days = [{"date": f"2026-01-1{n}", "min_temp": n, "max_temp": n + 5, "main_condition": "Clear"} for n in (5, 6)]

    reading = read(ChatMessage("tool", orjson.dumps({"city": "Rome", "days": days}).decode()))

    assert [(day.city, day.date, day.low, day.high) for day in reading.days] == [
        ("Rome", "2026-01-15", 5.0, 10.0),
        ("Rome", "2026-01-16", 6.0, 11.0),
    ]
    assert reading.current is None


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
    error = read(message).error

    assert error is not None
    assert "no such city" in error


def test_results_are_paired_with_calls_by_id_or_else_by_name() -> None:
    calls = (ChatCall("f", {"city": "Oslo"}, "1"), ChatCall("f", {"city": "Rome"}, "2"))
    by_id = (ChatMessage("tool", "second", call_id="2"), ChatMessage("tool", "first", call_id="1"))
    by_name = (ChatMessage("tool", "first", name="f"), ChatMessage("tool", "second", name="f"))

    for results in (by_id, by_name):
        messages = (ChatMessage("user", "both?"), ChatMessage("assistant", calls=calls), *results)
        outcomes = understand(ChatRequest("gemini", "m", messages)).outcomes
        found = {outcome.call.arguments["city"]: outcome.reading.data for outcome in outcomes}

        assert found == {"Oslo": "first", "Rome": "second"}


def test_the_place_of_a_follow_up_is_the_one_last_talked_about() -> None:
    history = (
        ChatMessage("user", "Weather in Oslo?"),
        ChatMessage("assistant", "It is cold in Oslo."),
        ChatMessage("user", "And in Rome?"),
        ChatMessage("assistant", calls=(ChatCall("get_weather", {"city": "Rome"}, "1"),)),
        ChatMessage("tool", TEXT, call_id="1"),
        ChatMessage("assistant", "It is mild."),
    )

    request = ChatRequest("gemini", "m", (*history, ChatMessage("user", "And tomorrow?")))

    assert understand(request).places == ("Rome",)
    assert understand(request).named_places == ()
