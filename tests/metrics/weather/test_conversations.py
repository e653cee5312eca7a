"""What is judged in the light of the conversation: what it told, what it left open and what it took back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from keval import ToolCall, Trial
from keval_metrics_weather import (
    Accuracy,
    ActionPlanning,
    AmbiguityHandling,
    ContextRetention,
    RecommendationQuality,
    Repeatability,
    TaskCompletion,
)
from keval_metrics_weather.clarification import only_asks_back
from keval_metrics_weather.preferences import preferences_stated
from keval_metrics_weather.reading.words import read
from keval_metrics_weather.request import request

MakeTrial = Callable[..., Trial]
History = Sequence[tuple[str, str]]

ASKING_BACK = (
    "Which city do you mean? I can then give you the conditions and a recommendation, for example for Helsinki or"
    " Paris."
)
IN_SAN_FRANCISCO = [("I'm in San Francisco.", ASKING_BACK)]
IN_DUBLIN = [("I'm in Dublin today.", "Enjoy it!")]
JACKET_TWICE = [("I'm in Oslo. Do I need a coat?", "Yes."), ("And tomorrow?", "Yes.")]


@pytest.mark.parametrize(
    ("history", "question", "answer", "expected"),
    [
        (IN_SAN_FRANCISCO, "And now?", ASKING_BACK, "−0.2 city ignored (San Francisco)"),
        (IN_SAN_FRANCISCO, "And now?", "It's 12 °C in San Francisco.", "+0.2 city remembered (San Francisco)"),
        ([("Hi!", "Ask about the weather in Oslo.")], "Yes?", "It rains in Oslo.", "+0.2 city remembered (Oslo)"),
        ([("Sorry, I meant Rome.", "Sure.")], "And now?", "I'm sorry, which city?", "−0.2 city ignored (Rome)"),
        ([("Rome?", "It's 9 °C.")], "Dry?", "It's fine in Rome, dry.", "+0.2 city remembered (Rome)"),
    ],
)
def test_cities_are_remembered_but_for_examples_and_interjections(
    history: History, question: str, answer: str, expected: str, trial: MakeTrial
) -> None:
    score = ContextRetention().score(trial(answer, question, history=history))

    assert f"0.5 to begin with, {expected}" == score.reason


@pytest.mark.parametrize("said", [ASKING_BACK, "Do you mean Oslo? Or Rome?", "Name a city, such as Oslo.", "In Oslo?"])
def test_a_city_that_is_only_an_example_is_not_mentioned(said: str, trial: MakeTrial) -> None:
    score = ContextRetention().score(trial("It's fine in Oslo.", "And now?", history=[("Hello!", said)]))

    assert (True, "the history mentions no city, preference or time") == (score.neutral, score.reason)


@pytest.mark.parametrize(
    ("history", "question", "answer", "expected"),
    [
        (IN_DUBLIN, "What should I wear?", "Right now it's 8.4°C in Dublin.", []),
        (IN_DUBLIN, "What should I wear?", "The current temperature in Dublin is 8°C.", []),
        (IN_DUBLIN, "What should I wear?", "It's 8.4°C in Dublin.", []),
        (IN_DUBLIN, "What should I wear?", "It will be 8.4°C in Dublin tomorrow.", ["ignored (today)"]),
        (IN_DUBLIN, "What should I wear?", "It's 8.4°C in Dublin today.", ["remembered (today)"]),
        (IN_DUBLIN, "What should I wear?", "It's 8.4°C in Dublin this evening.", []),
        ([("How is Rome this evening?", "8 °C")], "Do I need a coat?", "Yes, in Rome.", ["ignored (evening)"]),
        ([("Rome on Saturday?", "9 °C")], "Do I need a coat?", "Yes, in Rome.", ["ignored (Saturday)"]),
        (
            [("Rome on Saturday?", "9 °C")],
            "Do I need a coat then?",
            "Saturday in Rome: yes.",
            ["remembered (Saturday)"],
        ),
        ([("Rome on Saturday?", "9 °C"), ("And now?", "8 °C")], "Do I need a coat?", "Yes, in Rome.", []),
        (JACKET_TWICE, "Once more: do I need a coat?", "Yes, in Oslo.", []),
        (JACKET_TWICE, "Will I need gloves?", "Yes, in Oslo.", ["ignored (tomorrow)"]),
        ([("Rain tomorrow?", ASKING_BACK)], "In Oslo.", "It's 4 °C in Oslo.", ["ignored (tomorrow)"]),
    ],
)
def test_times_are_ignored_only_where_they_are_due(
    history: History, question: str, answer: str, expected: list[str], trial: MakeTrial
) -> None:
    score = ContextRetention().score(trial(answer, question, history=history))

    found = [
        f"{point['what'].removeprefix('time ')} ({', '.join(point['found'])})" for point in score.details["points"]
    ]
    assert expected == [text for text in found if not text.startswith("city")]


@pytest.mark.parametrize(
    ("stated", "answer", "expected"),
    [
        (["I love museums."], "As you love art, visit a museum.", "+0.15 preference acknowledged (you love, museums)"),
        (["I hate hikes."], "You hate hiking, so take the bus.", "+0.15 preference acknowledged (you hate, hikes)"),
        (["I hate rain.", "I love museums."], "Take a coat.", "−0.15 preference ignored (rain, museums)"),
        (["I love hiking.", "I no longer enjoy hikes.", "I hate rain."], "Hm.", "−0.15 preference ignored (rain)"),
        (["I hate the rain. Sorry, I don't mind the rain any more."], "Hm.", ""),
        (["I like heat and I like cold snow.", "I don't like snow anymore."], "Hm.", "heat, cold)"),
        (["I no longer like hiking.", "I love hiking again."], "Hm.", "−0.15 preference ignored (hiking again)"),
    ],
)
def test_a_preference_holds_until_it_is_taken_back(
    stated: list[str], answer: str, expected: str, trial: MakeTrial
) -> None:
    history = [*((said, "Noted.") for said in stated), ("I'm in Oslo.", "Fine.")]

    score = ContextRetention().score(trial(answer, "What should I do in Oslo?", history=history))

    assert score.reason.endswith(expected)
    assert ("preference" in score.reason) == bool(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I no longer enjoy hiking", True),
        ("I'm no longer a big fan of hiking", True),
        ("I don't mind the rain any more", True),
        ("I do not like hiking anymore", True),
        ("I used to love hiking", True),
        ("I don't like hiking", False),
        ("I mind the cold", False),
        ("I can't stand the cold any more", False),
        ("I love hiking", False),
    ],
)
def test_what_is_liked_no_more_is_told_from_what_is_disliked(text: str, expected: bool) -> None:
    assert [expected] == [stated.taken_back for stated in preferences_stated(read(text))]


COMPLETE = "It's 8 °C in Dublin. I recommend a warm coat and an umbrella, as it rains a little all day."


def repeatability(trial: Trial) -> tuple[float | None, bool]:
    score = Repeatability().score(trial)
    return score.value, score.neutral


@pytest.mark.parametrize(
    ("history", "question", "answer", "expected"),
    [
        ([("What should I wear?", ASKING_BACK)], "What should I wear?", ASKING_BACK, (0.5, True)),
        ([("What should I wear?", ASKING_BACK)], "What should I wear?", COMPLETE, (0.5, True)),
        ([("What should I wear?", COMPLETE)], "What should I wear?", ASKING_BACK, (0.0, False)),
        ([("What should I wear in Dublin?", COMPLETE)], "Again: what should I wear?", COMPLETE, (1.0, False)),
        ([("What should I wear in Dublin?", COMPLETE)], "Sorry, what should I wear?", "Hm.", (0.0, False)),
        ([("Wear what in Dublin?", COMPLETE), ("And in Rome?", "9 °C")], "Wear what?", COMPLETE, (0.5, True)),
        ([("I'm in Dublin.", "Fine."), ("Wear what?", COMPLETE)], "Wear what in Dublin?", COMPLETE, (1.0, False)),
        ([("What should I wear?", COMPLETE), ("What should I wear?", ASKING_BACK)], "What should I wear?", COMPLETE,
         (1.0, False)),
        ([("Is Dublin windy?", COMPLETE)], "Do I need gloves in Dublin?", COMPLETE, (0.5, True)),
    ],
)  # fmt: skip
def test_repeatability_compares_answers_about_one_place(
    history: History, question: str, answer: str, expected: tuple[float, bool], trial: MakeTrial
) -> None:
    assert expected == repeatability(trial(answer, question, history=history))


def test_an_agent_that_keeps_asking_is_not_more_repeatable(trial: MakeTrial) -> None:
    history = [("What should I wear in Dublin?", COMPLETE), ("What should I wear?", ASKING_BACK)]

    asking, complete = (
        repeatability(trial(said, "What should I wear?", history=history)) for said in (ASKING_BACK, COMPLETE)
    )

    assert ((0.0, False), (1.0, False)) == (asking, complete)


HELSINKI: Mapping[str, Any] = {
    "city": "Helsinki",
    "current": {"temperature": 20, "main_condition": "Rain"},
    "daily_summaries": [
        {"date": "2026-06-18", "min_temp": 12, "max_temp": 21, "main_condition": "Rain"},
        {"date": "2026-06-19", "min_temp": 10, "max_temp": 17, "main_condition": "Clouds"},
        {"date": "2026-06-20", "min_temp": 14, "max_temp": 24, "main_condition": "Clear"},
    ],
}
UMBRELLA_TOMORROW = [("Do I need an umbrella tomorrow?", ASKING_BACK)]
PACKING = [
    ("I'm flying to Helsinki tomorrow. What will the weather be like?", "Cloudy."),
    ("Lovely, thank you!", "Sure."),
]


@pytest.mark.parametrize(
    ("history", "question", "answer", "expected"),
    [
        (UMBRELLA_TOMORROW, "In Helsinki.", "Tomorrow there will be clouds in Helsinki, 10°C to 17°C.", 1.0),
        (UMBRELLA_TOMORROW, "In Helsinki.", "It is currently 20°C in Helsinki.", 0.8),
        (UMBRELLA_TOMORROW, "Sorry, I meant Helsinki.", "Tomorrow: 21°C to 24°C.", 0.7),
        (PACKING, "So what should I pack for it?", "Tomorrow there will be clouds, 10°C to 17°C.", 1.0),
        (PACKING, "So what should I pack?", "Tomorrow: 21°C to 24°C.", 0.7),
        (PACKING, "Good to know. Is an umbrella needed then?", "Tomorrow: 21°C to 24°C.", 0.7),
        ([*PACKING, ("And on Saturday?", "Sun.")], "What should I pack for that day?", "It'll be 24°C and clear.", 1.0),
        ([*PACKING, ("Do I need a hat now?", "No.")], "So is a scarf better?", "It's 20°C.", 1.0),
        (PACKING, "What should I wear?", "It's 20°C.", 1.0),
        (PACKING, "How cold is it?", "It's 20°C.", 1.0),
    ],
)
def test_a_message_is_about_the_day_of_those_it_goes_on_from(
    history: History, question: str, answer: str, expected: float, trial: MakeTrial
) -> None:
    score = Accuracy().score(trial(answer, question, weather=HELSINKI, history=history))

    assert (expected, False) == (score.value, score.neutral)


def test_an_answer_to_a_question_back_asks_for_what_was_asked_before(trial: MakeTrial) -> None:
    asked = request(trial("", "In Oslo.", history=UMBRELLA_TOMORROW))
    chat = request(trial("", "Thanks!", history=UMBRELLA_TOMORROW))
    own = request(trial("", "And now?", history=UMBRELLA_TOMORROW))

    assert (("+1",), True, True) == (asked.days, asked.wants_advice, asked.wants_forecast)
    assert ((), False, False) == (chat.days, chat.wants_advice, chat.wants_forecast)
    assert (("now",), True, False) == (own.days, own.wants_advice, own.wants_forecast)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (ASKING_BACK, []),
        ("Would you like a recommendation?", []),
        ("I will take it into account in my recommendations.", []),
        ("Got it, and my suggestions will reflect that.", []),
        ("My recommendation is to stay in.", ["recommend"]),
        ("I will be brief. Recommendation: a coat.", ["recommend", "coat"]),
        ("I can recommend a coat.", ["recommend", "coat"]),
    ],
)
def test_a_recommendation_offered_is_none_given(answer: str, expected: list[str], trial: MakeTrial) -> None:
    score = RecommendationQuality().score(trial(answer, "What should I wear in Oslo?"))

    assert expected == score.details.get("recommendations", [])


def test_an_item_that_looks_like_a_noun_of_recommending_is_an_item(trial: MakeTrial) -> None:
    score = RecommendationQuality(items=("lotion",)).score(trial("I would pack lotion.", "What should I pack?"))

    assert ["lotion"] == score.details["recommendations"]


def test_only_asking_back_is_no_advice_no_plan_and_not_off_topic(trial: MakeTrial) -> None:
    back = trial(ASKING_BACK, "How cold is it?", history=[("I'm in Oslo.", "Fine.")])

    assert only_asks_back(read(ASKING_BACK))
    assert not only_asks_back(read("It's 5 °C. Would you like the forecast?"))
    assert "0.5 to begin with, +0.1 substance, 115 characters" == TaskCompletion().score(back).reason
    assert ActionPlanning().score(back).neutral


def test_a_follow_up_to_a_weather_question_wants_weather(trial: MakeTrial) -> None:
    score = ActionPlanning().score(trial("Which city?", "And tomorrow?", history=[("Weather in Oslo?", "5 °C")]))

    assert "0 to begin with, −0.2 no weather data" == score.reason


def test_an_assistants_examples_do_not_tell_where_the_user_is(trial: MakeTrial) -> None:
    history = [("What should I wear?", ASKING_BACK)]

    score = AmbiguityHandling().score(trial(ASKING_BACK, "Again: what should I wear?", history=history))

    assert ["no location"] == score.details["unclear"]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Yes, take an umbrella. It rains in Oslo at 5 °C. I recommend a coat.", 0.8),
        ("Yes, take an umbrella. It rains in Oslo at 5 °C.", 0.5),
        ("Yes, I recommend an umbrella, as it rains.", 0.5),
        ("Take an umbrella. It rains in Oslo at 5 °C.", 0.4),
        ("Yes: it rains in Oslo at 5 °C. I recommend an umbrella.", 0.8),
        ("Yes, of course. Take an umbrella. It rains.", 0.4),
    ],
)
def test_a_direct_answer_may_come_before_the_weather(answer: str, expected: float, trial: MakeTrial) -> None:
    calls = [ToolCall("get_current_weather", {"city": "Oslo"}, result="{}")]

    assert expected == ActionPlanning().score(trial(answer, "Do I need an umbrella in Oslo?", calls=calls)).value


def test_this_afternoon_needs_no_forecast_tool(trial: MakeTrial) -> None:
    calls = [ToolCall("get_current_weather", {"city": "Oslo"}, result="{}")]
    tools = ("get_current_weather", "get_weather_forecast")

    score = ActionPlanning().score(trial("It's 5 °C.", "Oslo this afternoon: cold?", calls=calls, tools=tools))

    assert 0.5 == score.value
