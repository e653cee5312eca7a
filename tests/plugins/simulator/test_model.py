"""The simulated model in conversations: what it remembers, when it asks back, how it errs, and what it is forced to."""

from __future__ import annotations

from typing import Any

import attrs
import orjson
import pytest

from keval_gateway import ChatCall, ChatMessage, ChatReply, ChatRequest, ChatTool, ModelFault
from keval_simulator.answers import Flaws
from keval_simulator.model import SimulatedModel
from tests.plugins.simulator.made_up import PERFECT, STEADY, TEXT, Talk, known, talk, tool

FLAG = {"anyOf": [{"type": "boolean"}, {"type": "null"}], "default": None}
DAYS = {"type": "integer", "minimum": 1, "maximum": 5, "default": 3}
INSIGHT = {"user_id": TEXT, "insight_text": TEXT, "dislikes_cold": FLAG, "outdoor_activities": FLAG}
TEMPERATURES = {"Helsinki": -7.2, "Paris": 18.4, "New York": -2.3, "São Paulo": 27.4, "Rome": 12.5}
USER = {"user_id": "u1", "preferences": {"dislikes_cold": True}}


def now(city: str) -> dict[str, Any]:
    return {"city": city, "temperature": known(TEMPERATURES, city, f"no city named {city!r}"), "humidity": 80}


def outlook(city: str, days: int = 3) -> dict[str, Any]:
    known(TEMPERATURES, city, f"no city named {city!r}")
    return {"city": city, "days": [{"date": f"2026-01-{15 + n}", "low": n, "high": n + 6} for n in range(days)]}


NOW, NEXT, KNOWN, LEARN = (
    "get_current_weather",
    "get_weather_forecast",
    "get_user_preferences",
    "update_user_preferences",
)
WEATHER = [
    tool(now, NOW, "Get the current weather in a city.", {"city": TEXT}, "city"),
    tool(outlook, NEXT, "Get the forecast for a city by day.", {"city": TEXT, "days": DAYS}, "city"),
    tool(lambda user_id: USER, KNOWN, "Get what is known of a user's preferences.", {"user_id": TEXT}, "user_id"),
    tool(lambda **stated: {"stored": True}, LEARN, "Remember a preference.", INSIGHT, "user_id"),
]
OFFERED = tuple(each for each, _ in WEATHER)


def ask(question: str, **fields: Any) -> Talk:
    return talk(WEATHER, question, system="You are a weather assistant. The user's id is u1.", **fields)


LOOK = (KNOWN, {"user_id": "u1"})
HELSINKI = (
    ChatMessage("user", "What's the weather in Helsinki?"),
    ChatMessage("assistant", calls=(ChatCall(NOW, {"city": "Helsinki"}, "1"),)),
    ChatMessage("tool", "{}", call_id="1"),
    ChatMessage("assistant", "It is -7.2 in Helsinki."),
)


@pytest.mark.parametrize(
    ("question", "calls"),
    [
        ("how cold is it in new york right now", [(NOW, {"city": "new york"}), (NOW, {"city": "New York"})]),
        ("Will it rain in Paris tomorrow?", [(NEXT, {"city": "Paris"})]),
        ("The forecast for Rome for the next 30 days?", [(NEXT, {"city": "Rome", "days": 5})]),
        ("Is it warmer in Rome or in São Paulo?", [(NOW, {"city": "Rome"}), (NOW, {"city": "São Paulo"})]),
        (
            "Current weather and forecast for 2 days in Paris",
            [(NEXT, {"city": "Paris", "days": 2}), (NOW, {"city": "Paris"})],
        ),
        ("What should I do in Rome now?", [LOOK, (NOW, {"city": "Rome"})]),
        ("What are my preferences?", [LOOK]),
        ("Helsinki?", [(NOW, {"city": "Helsinki"})]),
        ("What's the weather?", []),
        ("Hello!", []),
        ("Tell me a joke", []),
    ],
)
def test_the_tools_that_a_question_needs_are_called(question: str, calls: list[Any]) -> None:
    assert calls == ask(question).calls


@pytest.mark.parametrize(
    ("question", "calls"),
    [
        ("And tomorrow?", [(NEXT, {"city": "Helsinki"})]),
        ("What about Rome?", [(NOW, {"city": "Rome"})]),
        ("Rome", [(NOW, {"city": "Rome"})]),
        ("Thanks!", []),
        ("Great, that helps!", []),
    ],
)
def test_follow_ups_are_about_what_was_talked_about(question: str, calls: list[Any]) -> None:
    assert calls == ask(question, history=HELSINKI).calls


def test_a_value_given_when_asked_for_answers_the_first_question() -> None:
    asked = (ChatMessage("user", "What's the forecast for the next 2 days?"), ChatMessage("assistant", "Which city?"))

    assert [NEXT] == [name for name, _ in ask("Rome", history=asked).calls]


def test_a_missing_value_is_asked_for() -> None:
    answer = ask("What's the weather?").answer

    assert "city" in answer
    assert "?" in answer


def test_a_day_of_several_is_told_by_its_name() -> None:
    assert "2026-01-17" in ask("What is the forecast for Rome on Saturday?").answer
    assert "2026-01-15" not in ask("What is the forecast for Rome on Saturday?").answer
    assert "date: 2026-01-16; low: 1; high: 7" in ask("What is the forecast for Rome tomorrow?").answer


def test_what_worked_is_told_of_several() -> None:
    said = ask("How warm is it in Paris and in Rome?").answer

    assert "18.4" in said
    assert "12.5" in said


def test_what_users_say_of_themselves_is_kept_with_the_tool_and_in_mind() -> None:
    said = ask("I hate the cold and I love hiking. What's the weather in Rome?")
    later = ask("What's the weather in Rome?", history=(ChatMessage("user", "I hate the cold."),))
    taken_back = ask("I don't mind the cold.", history=(ChatMessage("user", "I hate the cold."),))

    insight = {"user_id": "u1", "insight_text": "I hate the cold and I love hiking.", "dislikes_cold": True}
    assert [(LEARN, insight), (NOW, {"city": "Rome"})] == said.calls
    assert "12.5" in said.answer
    assert "As you told me: I hate the cold." in later.answer
    assert [False] == [made["dislikes_cold"] for _, made in taken_back.calls]
    assert "I hate" not in taken_back.answer


def test_without_tools_it_says_that_it_has_no_source_or_makes_it_up() -> None:
    honest = talk([], "What's the weather in Helsinki?").answer
    inventive = talk([], "What's the weather in Helsinki?", model=SimulatedModel(guesses=1)).answer

    assert "source" in honest
    assert "What's the weather in Helsinki" in inventive


def test_small_talk_calls_nothing_and_is_answered() -> None:
    assert ask("Hello!").answer.startswith(("Hello", "Hi"))
    assert ask("Thank you!").answer.startswith(("You're welcome", "My pleasure"))


@pytest.mark.parametrize(
    "system",
    ["The user's id is user-1.", "user_id: user-1", 'Speak kindly. The user ID is "user-1", always.', "User id=user-1"],
)
def test_the_user_is_who_the_system_prompt_says(system: str) -> None:
    talked = talk(WEATHER, "What do you know about my weather preferences?", system=system)

    assert [(KNOWN, {"user_id": "user-1"})] == talked.calls


def answers(repetitions: int, model: SimulatedModel, question: str = "What's the weather in Paris?") -> list[str]:
    return [ask(question, model=model, repetition=number).answer for number in range(repetitions)]


def test_answers_are_repeated_by_the_seed_and_vary_with_the_repetition() -> None:
    first = answers(20, SimulatedModel(seed=4))

    assert first == answers(20, SimulatedModel(seed=4))
    assert first != answers(20, SimulatedModel(seed=5))
    assert len(set(first)) > 5


def test_a_requests_own_seed_varies_the_answer() -> None:
    request = ChatRequest("gemini", "m", (ChatMessage("user", "What's the weather in Rome?"),))

    assert len({SimulatedModel()(attrs.evolve(request, seed=seed)).text for seed in range(12)}) > 1


@pytest.mark.parametrize("tools", [OFFERED, ()], ids=["tools", "no tools"])
def test_ids_trials_and_transport_do_not_change_an_answer(tools: tuple[ChatTool, ...]) -> None:
    plain = ChatRequest("gemini", "m", (*HELSINKI, ChatMessage("user", "And in Rome?")), tools=tools)
    dressed = attrs.evolve(plain, wire="anthropic", model="n", trial="t", stream=True, headers={"a": "b"}, raw={"x": 1})

    assert STEADY(plain) == STEADY(dressed)


def test_a_plan_does_not_change_with_its_results() -> None:
    talks = [ask("What should I do in Rome now?", model=SimulatedModel(careless=0.5), repetition=n) for n in range(20)]

    assert {(LOOK[0], NOW), (NOW,)} == {tuple(name for name, _ in each.calls) for each in talks}


def test_it_errs_about_as_often_as_it_says() -> None:
    said = answers(150, SimulatedModel(flaws=attrs.evolve(PERFECT, misreads=0.3)))

    assert 0.2 < sum("humidity: 80" not in answer for answer in said) / 150 < 0.4
    assert sum("humidity: 80" not in answer for answer in answers(150, SimulatedModel(flaws=Flaws()))) < 22


def reply(**fields: Any) -> ChatReply:
    return STEADY(ChatRequest("gemini", "m", (ChatMessage("user", "What's the weather in Rome?"),), **fields))


def test_a_forced_tool_is_called_filled_from_the_question_or_where_nothing_fits_with_anything() -> None:
    level = {"type": "integer", "minimum": 1, "maximum": 5}
    unfit, _ = tool(dict, "grade", "Grade it.", {"level": level}, "level")

    (fitting,) = reply(tools=OFFERED, forced_tool=NOW, tool_choice="required").calls
    (grade,) = reply(tools=(*OFFERED, unfit), forced_tool="grade", tool_choice="required").calls

    assert fitting == ChatCall(NOW, {"city": "Rome"})
    assert grade.name == "grade"
    assert 1 <= grade.arguments["level"] <= 5


def test_a_forced_tool_that_is_not_offered_is_refused() -> None:
    with pytest.raises(ModelFault, match="no tool 'nothing'"):
        reply(tools=OFFERED, forced_tool="nothing")


def test_tool_choice_none_and_required_are_followed() -> None:
    assert reply(tools=OFFERED, tool_choice="none").calls == ()
    assert len(reply(tools=OFFERED[:1], tool_choice="required").calls) == 1


def test_a_structured_answer_holds_the_prose() -> None:
    schema = {"type": "object", "properties": {"answer": TEXT}, "required": ["answer"]}

    said = orjson.loads(reply(response_schema=schema).text)
    free = orjson.loads(reply(response_schema={"type": "object"}).text)

    assert "source" in said["answer"]
    assert "source" in free["answer"]


def test_every_answer_of_a_long_session_comes_to_an_end() -> None:
    history: list[ChatMessage] = []
    for question in ("Hi", "I hate rain", "Weather in Rome?", "And tomorrow?", "And in Paris?", "What should I wear?"):
        said = ask(question, history=history)
        history += [ChatMessage("user", question), ChatMessage("assistant", said.answer)]

        assert said.answer
