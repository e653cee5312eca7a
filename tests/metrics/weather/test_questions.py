"""What a question is about and leaves open, in the light of the conversation before it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from keval_metrics_weather import Accuracy
from keval_metrics_weather.behaviour import AmbiguityHandling
from keval_metrics_weather.helpfulness import RecommendationQuality, TaskCompletion
from keval_metrics_weather.questions import only_asks_back
from keval_metrics_weather.reading.words import read
from keval_metrics_weather.tool_use import ActionPlanning
from keval_metrics_weather.turns import turn_of
from tests.metrics.weather.conftest import WEATHER, make_trial as trial
from tests.metrics.weather.test_retention import ASKING_BACK

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
    history: Sequence[tuple[str, str]], question: str, answer: str, expected: float
) -> None:
    score = Accuracy().score(trial(answer, question, weather=WEATHER, history=history))

    assert (expected, False) == (score.value, score.neutral)


def test_an_answer_to_a_question_back_asks_for_what_was_asked_before() -> None:
    asked, chat, own = (
        turn_of(trial("", said, history=UMBRELLA_TOMORROW)).request for said in ("In Oslo.", "Thanks!", "And now?")
    )

    assert (("+1",), True, True) == (asked.days, asked.wants_advice, asked.wants_forecast)
    assert ((), False, False) == (chat.days, chat.wants_advice, chat.wants_forecast)
    assert (("now",), True, False) == (own.days, own.wants_advice, own.wants_forecast)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (ASKING_BACK, []),
        ("I will take it into account in my recommendations.", []),
        ("Got it, and my suggestions will reflect that.", []),
        ("My recommendation is to stay in.", ["recommend"]),
        ("I will be brief. Recommendation: a coat.", ["recommend", "coat"]),
        ("I can recommend a coat.", ["recommend", "coat"]),
    ],
)
def test_a_recommendation_offered_is_none_given(answer: str, expected: list[str]) -> None:
    score = RecommendationQuality().score(trial(answer, "What should I wear in Oslo?"))

    assert expected == score.details.get("recommendations", [])


def test_only_asking_back_is_no_advice_no_plan_and_not_off_topic() -> None:
    back = trial(ASKING_BACK, "How cold is it?", history=[("Hello!", "Hi!")])

    assert only_asks_back(read(ASKING_BACK))
    assert not only_asks_back(read("It's 5 °C. Would you like the forecast?"))
    assert "0.5 to begin with, +0.1 substance, 115 characters" == TaskCompletion().score(back).reason
    assert ActionPlanning().score(back).neutral


def test_a_follow_up_to_a_weather_question_wants_weather() -> None:
    score = ActionPlanning().score(trial("Which city?", "And tomorrow?", history=[("Weather in Oslo?", "5 °C")]))

    assert "0 to begin with, -0.2 no weather data" == score.reason


def test_an_assistants_examples_do_not_tell_where_the_user_is() -> None:
    history = [("What should I wear?", ASKING_BACK)]

    score = AmbiguityHandling().score(trial(ASKING_BACK, "Again: what should I wear?", history=history))

    assert ["no location"] == score.details["unclear"]


def test_a_trial_is_read_once_for_all_metrics_and_is_not_taken_for_another() -> None:
    first, second = trial("It is 5 °C.", "How is Oslo?"), trial("It is 9 °C.", "How is Rome?")

    turns = [turn_of(one) for one in (first, first, second, first)]

    assert turns[0] is turns[1]
    assert ["Oslo", "Oslo", "Rome", "Oslo"] == [turn.question.cities[0].name for turn in turns]
    assert [5, 5, 9, 5] == [turn.reading.temperatures[0].low for turn in turns]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Who wrote Snow Crash?", "Snow Crash is by Neal Stephenson."),
        ("Who sang Umbrella?", "Rihanna sang Umbrella."),
        ("When did the Miami Heat last win?", "In 2013, in the heat of June."),
        ("How do you cure a cold?", "A cold goes away by itself."),
        ("What is cloud computing?", "Renting computers in the cloud."),
        ("Translate rain into French", "Rain is pluie."),
        ("Can you suggest a novel?", "I recommend Snow Crash."),
    ],
)
def test_a_question_about_something_else_plans_no_look_up(question: str, answer: str) -> None:
    assert ActionPlanning().score(trial(answer, question, unlisted=None)).neutral


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Will Storm Amy reach Oslo?", "Yes, with rain."),
        ("Is the Sun out in Oslo?", "Yes, it is sunny."),
        ("Who knows if it rains in Oslo today?", "It rains."),
        ("Is it a cold day in Oslo?", "Yes: it is cold, at -3 °C."),
    ],
)
def test_a_name_beside_a_word_of_the_weather_leaves_it_the_weather(question: str, answer: str) -> None:
    assert not ActionPlanning().score(trial(answer, question, unlisted=None)).neutral


@pytest.mark.parametrize("question", ["Help", "weekend?", "Tomorrow?", "I need help", "Any ideas?", "On Monday?"])
def test_a_bare_wish_or_day_lacks_the_location(question: str) -> None:
    score = AmbiguityHandling().score(trial("Which city?", question))

    assert (1.0, False) == (score.value, score.neutral)
    assert "no location" in score.details["unclear"]
