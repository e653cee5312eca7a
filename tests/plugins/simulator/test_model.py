"""The simulated model in conversations: which tools it calls, with which arguments, and what it answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import orjson
import pytest

from keval_gateway import ChatCall, ChatMessage, ChatReply, ChatRequest, ChatTool, ModelFault
from keval_simulator.conversation import FLAGS
from keval_simulator.model import SimulatedModel
from keval_simulator.replies import Flaws

TEXT = {"type": "string"}
NUMBER = {"type": "number"}
FLAG = {"anyOf": [{"type": "boolean"}, {"type": "null"}], "default": None}


def tool(name: str, description: str, properties: Mapping[str, Any], *required: str) -> ChatTool:
    return ChatTool(name, description, {"type": "object", "properties": properties, "required": required})


DAYS = {"type": "integer", "minimum": 1, "maximum": 5, "default": 3}
INSIGHT = {"user_id": TEXT, "insight_text": TEXT, **dict.fromkeys(FLAGS, FLAG)}
WEATHER = (
    tool("get_current_weather", "Get the current weather in a city.", {"city": TEXT}, "city"),
    tool("get_weather_forecast", "Get the forecast for a city by day.", {"city": TEXT, "days": DAYS}, "city"),
    tool("get_user_preferences", "Get what is known of a user's preferences.", {"user_id": TEXT}, "user_id"),
    tool("update_user_preferences_from_insight", "Remember a preference.", INSIGHT, "user_id"),
)
CURRENCIES = {"amount": NUMBER, "from_currency": TEXT, "to_currency": TEXT}
ANYTHING = (
    tool("search_docs", "Search the documentation.", {"query": TEXT}, "query"),
    tool("convert_currency", "Convert an amount of money.", CURRENCIES, *CURRENCIES),
    tool("add", "Add two numbers.", {"a": NUMBER, "b": NUMBER}, "a", "b"),
    tool("find_route", "Find a train route.", {"from_city": TEXT, "to_city": TEXT}, "from_city", "to_city"),
    tool("get_ticket", "Get a support ticket.", {"ticket_id": TEXT}, "ticket_id"),
    tool("cancel_order", "Cancel an order.", {"order_id": TEXT}, "order_id"),
)

TEMPERATURES = {"Helsinki": -7.2, "Paris": 18.4, "New York": -2.3, "São Paulo": 27.4, "Łódź": 3.0, "Rome": 12.5}


def weather(call: ChatCall) -> str:
    """Answers a call as the weather server does."""
    arguments = call.arguments
    city = arguments.get("city", "")
    if call.name == "get_user_preferences":
        return '{"user_id": "u1", "preferences": {"dislikes_cold": true}}'
    if call.name.startswith("update"):
        return '{"user_id": "u1", "preferences": {}}'
    if city not in TEMPERATURES:
        return f"Error: no city named {city!r} is known; try Helsinki."
    report = {"city": city, "main_condition": "Rain", "description": "light rain", "units": "metric"}
    if call.name == "get_current_weather":
        return orjson.dumps({**report, "temperature": TEMPERATURES[city], "humidity": 80, "wind_speed": 3}).decode()
    days = [
        {"date": f"2026-01-{15 + n}", "min_temp": n, "max_temp": n + 6, "main_condition": "Clear", "description": "sun"}
        for n in range(arguments.get("days", 3))
    ]
    return orjson.dumps({"city": city, "days": days}).decode()


def other(call: ChatCall) -> str:
    if call.name == "search_docs":
        return "Bananas are yellow. Retries are set with max_retries. The default is 3."
    return '{"result": 5}'


PERFECT = Flaws(rounds=0, slips=0, omits_details=0, omits_advice=0, forgets_user=0, overlooks=0, clutches=0, misreads=0)
STEADY = SimulatedModel(seed=1, flaws=PERFECT, guesses=0, careless=0, reads_on=1)


@attrs.frozen
class Talk:
    calls: list[tuple[str, dict[str, Any]]]
    answer: str
    steps: int


def talk(
    question: str,
    tools: Sequence[ChatTool] = WEATHER,
    *,
    history: Sequence[ChatMessage] = (),
    system: str = "You are a weather assistant. The user id is u1.",
    run: Callable[[ChatCall], str] = weather,
    model: SimulatedModel = STEADY,
    repetition: int = 1,
) -> Talk:
    """Runs an agent's loop until the model answers in words."""
    messages = [*history, ChatMessage("user", question)]
    called: list[tuple[str, dict[str, Any]]] = []
    for step in range(1, 10):
        request = ChatRequest("gemini", "m", tuple(messages), system, tuple(tools), repetition=repetition)
        reply = model(request)
        if not reply.calls:
            return Talk(called, reply.text, step)
        calls = [attrs.evolve(call, id=f"{step}-{index}") for index, call in enumerate(reply.calls)]
        called += [(call.name, dict(call.arguments)) for call in calls]
        messages.append(ChatMessage("assistant", calls=tuple(calls)))
        messages += [ChatMessage("tool", run(call), call_id=call.id, name=call.name) for call in calls]
    raise AssertionError(f"no answer after {called}")


NOW, NEXT = "get_current_weather", "get_weather_forecast"
LOOK = ("get_user_preferences", {"user_id": "u1"})


@pytest.mark.parametrize(
    ("question", "calls"),
    [
        ("What's the weather in Helsinki?", [(NOW, {"city": "Helsinki"})]),
        ("how cold is it in new york right now", [(NOW, {"city": "New York"})]),
        ("Will it rain in Paris tomorrow?", [(NEXT, {"city": "Paris", "days": 2})]),
        ("Give me a 5-day forecast for Rome, please.", [(NEXT, {"city": "Rome", "days": 5})]),
        ("The forecast for Rome for the next 30 days?", [(NEXT, {"city": "Rome", "days": 5})]),
        ("What will it be like in Paris this weekend?", [(NEXT, {"city": "Paris", "days": 5})]),
        ("Is it warmer in Łódź or in São Paulo?", [(NOW, {"city": "Łódź"}), (NOW, {"city": "São Paulo"})]),
        (
            "Current weather and forecast for the next 2 days in Paris, France",
            [(NOW, {"city": "Paris"}), (NEXT, {"city": "Paris", "days": 2})],
        ),
        ("What should I wear in Helsinki today?", [LOOK, (NOW, {"city": "Helsinki"})]),
        ("Any ideas for an afternoon in Rome?", [(NOW, {"city": "Rome"})]),
        ("What are my preferences?", [LOOK]),
        ("Helsinki?", [(NOW, {"city": "Helsinki"})]),
        ("What's the weather?", []),
        ("I'm travelling soon, what should I pack?", []),
        ("Hello!", []),
        ("Thanks a lot!", []),
        ("Tell me a joke", []),
        ("What is the capital of France?", []),
    ],
)
def test_the_right_weather_tools_are_called(question: str, calls: list[Any]) -> None:
    assert talk(question).calls == calls


@pytest.mark.parametrize(
    ("question", "calls"),
    [
        ("How do I configure retries?", [("search_docs", {"query": "configure retries"})]),
        ("What is 2 plus 3?", [("add", {"a": 2, "b": 3})]),
        (
            "How many euros are 50 dollars?",
            [("convert_currency", {"amount": 50, "from_currency": "USD", "to_currency": "EUR"})],
        ),
        ("Which train goes to Rome from Paris?", [("find_route", {"from_city": "Paris", "to_city": "Rome"})]),
        ("What is the state of ticket ABC-123?", [("get_ticket", {"ticket_id": "ABC-123"})]),
        ("Cancel order ORD-9 please", [("cancel_order", {"order_id": "ORD-9"})]),
        ("Hello", []),
    ],
)
def test_any_tools_will_do(question: str, calls: list[Any]) -> None:
    assert talk(question, ANYTHING, run=other).calls == calls


def test_a_tool_with_effects_is_known_by_its_verb() -> None:
    post = tool("get_blog_post", "Get a blog article.", {"title": TEXT}, "title")

    assert talk("What does the blog say about tea?", [post], run=other).calls != []
    assert "cancel_order" not in dict(talk("Where is my order ORD-9?", ANYTHING, run=other).calls)


def test_the_answer_has_the_facts_and_advice_with_a_reason() -> None:
    answer = talk("What's the weather in Helsinki?").answer

    for fact in ("-7.2°C", "Helsinki", "light rain", "80%", "umbrella", "warm coat"):
        assert fact in answer
    assert re.search(r"because|since|due to", answer)


def test_a_comparison_names_the_warmer_city() -> None:
    answer = talk("Is it warmer in Paris or in Helsinki?").answer

    assert "Paris is warmer than Helsinki, by 25.6 degrees" in answer


def test_a_forecast_that_is_too_short_is_said_to_be() -> None:
    assert "reaches only 5 days ahead" in talk("The forecast for Rome for the next 30 days?").answer


@pytest.mark.parametrize("opening", ["", "Good. ", "Once more, please: ", "If you know, "])
def test_a_yes_or_no_question_is_answered_first(opening: str) -> None:
    assert talk(f"{opening}should I take an umbrella in Paris?").answer.startswith("Yes, take an umbrella.")


@pytest.mark.parametrize("question", ["What's the weather?", "Do I need a jacket tomorrow?"])
def test_a_missing_city_is_asked_for(question: str) -> None:
    answer = talk(question).answer

    assert "?" in answer
    assert re.search(r"city|location", answer)


def test_what_worked_is_told_beside_an_apology_for_what_failed_with_an_alternative() -> None:
    answer = talk("Compare Paris and Xanadoria").answer

    assert "18.4°C" in answer
    assert "I'm sorry, I couldn't get the data for Xanadoria: no city" in answer
    assert re.search(r"alternative|instead|another|could", answer, re.IGNORECASE)


@pytest.mark.parametrize(
    ("system", "history"),
    [
        ("The user dislikes the cold.", ()),
        ("Preferences: {'dislikes_cold': True}", ()),
        ("", (ChatMessage("user", "I hate the cold."), ChatMessage("assistant", "Noted."))),
    ],
)
def test_preferences_are_acknowledged_wherever_they_come_from(system: str, history: Sequence[ChatMessage]) -> None:
    answer = talk("What's the weather in Helsinki?", system=system, history=history).answer

    assert "Since you dislike the cold" in answer


def test_a_stated_preference_is_kept_with_the_tool_and_acknowledged() -> None:
    said = talk("I hate the cold and I love hiking. What's the weather in Rome?")

    assert said.calls == [
        (
            "update_user_preferences_from_insight",
            {
                "user_id": "u1",
                "insight_text": "I hate the cold and I love hiking.",
                "dislikes_cold": True,
                "outdoor_activities": True,
            },
        ),
        (NOW, {"city": "Rome"}),
    ]
    assert "noted" in said.answer or "saved" in said.answer
    assert "12.5°C" in said.answer


@pytest.mark.parametrize("question", ["I hate the cold and I love hiking.", "I really don't mind the cold any more."])
def test_a_statement_is_noted_and_nothing_else_is_looked_up(question: str) -> None:
    for history in ((), HELSINKI):
        said = talk(question, history=history)

        assert ["update_user_preferences_from_insight"] == [name for name, _ in said.calls]
        assert "?" not in said.answer


def test_a_preference_taken_back_is_told_to_the_tool_and_no_longer_minded() -> None:
    told = (ChatMessage("user", "I hate the cold."), ChatMessage("assistant", "Noted."))

    said = talk("Sorry, I don't mind the cold. I hate the rain.", history=told)
    later = talk("What's the weather in Helsinki?", history=(*told, ChatMessage("user", "I don't mind the cold.")))

    assert [(True, False)] == [(made["dislikes_rain"], made["dislikes_cold"]) for _, made in said.calls]
    assert "you no longer dislike the cold" in said.answer
    assert "dislike" not in later.answer


HELSINKI = (
    ChatMessage("user", "What's the weather in Helsinki?"),
    ChatMessage("assistant", "It is -7.2°C in Helsinki with light rain."),
)


@pytest.mark.parametrize(
    ("question", "calls"),
    [
        ("And tomorrow?", [(NEXT, {"city": "Helsinki", "days": 2})]),
        ("What about Rome?", [(NOW, {"city": "Rome"})]),
        ("Rome", [(NOW, {"city": "Rome"})]),
        ("Should I take a jacket then?", [LOOK, (NOW, {"city": "Helsinki"})]),
        ("Thanks!", []),
        ("Great, that helps!", []),
    ],
)
def test_follow_ups_are_about_what_was_talked_about(question: str, calls: list[Any]) -> None:
    assert talk(question, history=HELSINKI).calls == calls


def test_a_day_is_kept_in_mind_until_another_is_named() -> None:
    history = [ChatMessage("user", "How will it be in Rome on Saturday?"), ChatMessage("assistant", "Mild.")]
    for question in ("Thanks, good to know!", "I hate the rain."):
        history += [ChatMessage("user", question), ChatMessage("assistant", "Noted.")]

    said = talk("So what should I pack for it?", history=history)

    assert (NEXT, {"city": "Rome", "days": 5}) == said.calls[-1]
    assert re.search(r"\bSaturday, 2026-01-17,", said.answer)
    assert "2026-01-15" not in said.answer


def test_a_city_given_when_asked_for_answers_the_first_question() -> None:
    asked = (ChatMessage("user", "What's the forecast for the next 2 days?"), ChatMessage("assistant", "Which city?"))

    assert talk("Rome", history=asked).calls == [(NEXT, {"city": "Rome", "days": 2})]


def test_without_tools_it_says_that_it_has_no_data_or_makes_it_up() -> None:
    honest = talk("What's the weather in Helsinki?", ())
    inventive = talk("What's the weather in Helsinki?", (), model=SimulatedModel(guesses=1))

    assert "live weather data" in honest.answer
    assert "°C" not in honest.answer
    assert re.search(r"-?\d+°C", inventive.answer)


def test_small_talk_calls_nothing_and_is_answered() -> None:
    assert talk("Hello!").answer.startswith(("Hello", "Hi"))
    assert talk("Thank you!").answer.startswith(("You're welcome", "My pleasure"))
    assert len({talk("Look up the order A-17, please.", repetition=number).answer for number in range(8)}) > 1


@pytest.mark.parametrize(
    "system",
    ["The user's id is user-1.", "user_id: user-1", 'Speak kindly. The user ID is "user-1", always.', "User id=user-1"],
)
def test_the_user_is_who_the_system_prompt_says(system: str) -> None:
    talked = talk("What do you know about my weather preferences?", system=system)

    assert [("get_user_preferences", {"user_id": "user-1"})] == talked.calls


def test_a_tool_that_returns_nothing_is_answered() -> None:
    assert talk("How do I configure retries?", ANYTHING, run=lambda call: "").answer


def answers(repetitions: int, model: SimulatedModel, tools: Sequence[ChatTool] = WEATHER) -> list[str]:
    question = "What's the weather in Paris?"
    return [talk(question, tools, model=model, repetition=number).answer for number in range(repetitions)]


def test_answers_are_repeated_by_the_seed_and_vary_with_the_repetition() -> None:
    first = answers(20, SimulatedModel(seed=4))

    assert first == answers(20, SimulatedModel(seed=4))
    assert first != answers(20, SimulatedModel(seed=5))
    assert len(set(first)) > 10


def test_a_requests_own_seed_varies_the_answer() -> None:
    request = ChatRequest("gemini", "m", (ChatMessage("user", "What's the weather in Rome?"),))

    assert len({STEADY(attrs.evolve(request, seed=seed)).text for seed in range(8)}) > 1


@pytest.mark.parametrize("tools", [WEATHER, ()], ids=["tools", "no tools"])
def test_ids_trials_and_transport_do_not_change_an_answer(tools: tuple[ChatTool, ...]) -> None:
    plain = ChatRequest("gemini", "m", (*HELSINKI, ChatMessage("user", "And in Rome?")), tools=tools)
    dressed = attrs.evolve(plain, wire="anthropic", model="n", trial="t", stream=True, headers={"a": "b"}, raw={"x": 1})

    assert STEADY(plain) == STEADY(dressed)


def test_a_plan_does_not_change_with_its_results() -> None:
    talks = [
        talk("What should I wear in Helsinki?", model=SimulatedModel(careless=0.5), repetition=n) for n in range(20)
    ]

    assert {(LOOK[0], NOW), (NOW,)} == {tuple(name for name, _ in each.calls) for each in talks}


def test_it_errs_about_as_often_as_it_says() -> None:
    flawed = SimulatedModel(flaws=Flaws(rounds=0.3, slips=0.0, omits_advice=0.5, omits_details=0.0))

    said = answers(300, flawed)

    assert 0.2 < sum("18°C" in answer for answer in said) / 300 < 0.4
    assert 0.4 < sum("umbrella" not in answer for answer in said) / 300 < 0.6
    assert all("80%" in answer for answer in said)


def test_conditions_differ_over_many_repetitions() -> None:
    with_tools = answers(60, SimulatedModel(seed=2))
    without = answers(60, SimulatedModel(seed=2), tools=())

    right = re.compile(r"\b18(?:\.4)?°C")
    assert sum(bool(right.search(answer)) for answer in with_tools) > 50
    assert sum(bool(right.search(answer)) for answer in without) < 6
    assert sum("°C" in answer for answer in without) > 10
    assert sum("live weather data" in answer for answer in without) > 20


def ask(**fields: Any) -> ChatReply:
    return STEADY(ChatRequest("gemini", "m", (ChatMessage("user", "What's the weather in Rome?"),), **fields))


def test_a_forced_tool_is_called_filled_from_the_question_or_where_nothing_fits_with_anything() -> None:
    unfit = tool("grade", "Grade it.", {"level": {"type": "integer", "minimum": 1, "maximum": 5}}, "level")

    (fitting,) = ask(tools=WEATHER, forced_tool=NOW, tool_choice="required").calls
    (grade,) = ask(tools=(*WEATHER, unfit), forced_tool="grade", tool_choice="required").calls

    assert fitting == ChatCall(NOW, {"city": "Rome"})
    assert grade.name == "grade"
    assert 1 <= grade.arguments["level"] <= 5


def test_a_forced_tool_that_is_not_offered_is_refused() -> None:
    with pytest.raises(ModelFault, match="no tool 'nothing'"):
        ask(tools=WEATHER, forced_tool="nothing")


def test_tool_choice_none_and_required_are_followed() -> None:
    assert ask(tools=WEATHER, tool_choice="none").calls == ()
    assert len(ask(tools=(ANYTHING[2],), tool_choice="required").calls) == 1


def test_a_structured_answer_holds_the_prose() -> None:
    schema = {"type": "object", "properties": {"answer": TEXT}, "required": ["answer"]}

    said = orjson.loads(ask(response_schema=schema).text)
    free = orjson.loads(ask(response_schema={"type": "object"}).text)

    assert "Rome" in said["answer"]
    assert "Rome" in free["answer"]


def test_every_answer_of_a_long_session_comes_to_an_end() -> None:
    history: list[ChatMessage] = []
    for question in ("Hi", "I hate rain", "Weather in Rome?", "And tomorrow?", "And in Paris?", "What should I wear?"):
        said = talk(question, history=history)
        history += [ChatMessage("user", question), ChatMessage("assistant", said.answer)]

        assert said.steps <= 4
        assert said.answer
