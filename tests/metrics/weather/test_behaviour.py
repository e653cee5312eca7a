"""Ambiguity handling and repeatability: the document's rules and worked examples."""

from __future__ import annotations

import pytest

from keval_metrics_weather.behaviour import AmbiguityHandling, Repeatability
from tests.metrics.weather.conftest import make_trial as trial
from tests.metrics.weather.test_retention import ASKING_BACK

CLARIFYING = "I'd be happy to help! Could you please specify which city you'd like to know about?"


@pytest.mark.parametrize(
    ("question", "answer", "expected"),
    [
        ("What's the weather?", CLARIFYING, 1.0),  # the document's example
        ("What's the weather?", "Assuming Helsinki, it's 15°C.", 1.0),
        ("What's the weather?", "Assuming somewhere warm.", 0.8),
        ("What's the weather?", "It's 15°C.", 0.7),
        ("What's the weather?", "No idea.", 0.2),
        ("Will it rain in Paris?", "Which day do you mean?", 0.9),
        ("Something about Oslo", "Hm.", 0.2),
        ("Hi! What's the weather?", "Which city do you mean?", 1.0),
        ("Thanks! And what's the weather?", "No idea.", 0.2),
        ("Hi, the weather please, thanks", "No idea.", 0.2),
    ],
)
def test_ambiguity_handling(question: str, answer: str, expected: float) -> None:
    score = AmbiguityHandling().score(trial(answer, question))

    assert (expected, False) == (score.value, score.neutral)


@pytest.mark.parametrize(
    ("question", "history"),
    [
        ("What's the weather in Łódź?", ()),
        ("And tomorrow?", [("Weather in Oslo?", "5°C")]),
        ("What about Paris?", [("Weather in Oslo?", "5°C")]),
        ("Is it cold there?", [("Weather in Oslo?", "5°C")]),
        ("I hate cold weather.", ()),
        ("Thanks!", ()),
        ("Thanks, I'll take the umbrella!", ()),
        ("Ok, thank you for the weather update, bye!", ()),
        ("Will it rain in Paris at 5pm?", ()),
        ("Is it going to rain in Paris in the evening?", ()),
        ("Will it rain in Paris soon?", ()),
    ],
)
def test_a_clear_message_is_neutral(question: str, history: list[tuple[str, str]]) -> None:
    score = AmbiguityHandling().score(trial("Which city?", question, history=history))

    assert (0.5, True) == (score.value, score.neutral)


BEFORE = [("What's the weather in Helsinki?", "Temperature: 15°C. I recommend an umbrella.")]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Temperature: 15°C. I recommend an umbrella.", 1.0),  # the document's example
        ("Temperature: 17°C. I recommend an umbrella.", 1.0),
        ("Temperature: 25°C. I recommend an umbrella.", 1.0),  # the weather has changed
        ("No figures today. I recommend an umbrella.", 0.7),
        ("Temperature: 15°C. I recommend a scarf and boots.", 0.8),
        ("Temperature: 15°C, and that is all there is.", 0.5),
        ("Temperature: 15°C, I guess. I recommend an umbrella.", 0.9),
        ("15°C: umbrella!", 0.9),
        ("It feels like 9°C, at a temperature of 15°C. I recommend an umbrella.", 1.0),
        ("It feels like 5°C outside right now. I recommend an umbrella.", 1.0),
    ],
)
def test_repeatability(answer: str, expected: float) -> None:
    score = Repeatability().score(trial(answer, "Weather in Helsinki?", history=BEFORE))

    assert (expected, False) == (score.value, score.neutral)


COMPLETE = "It's 8 °C in Dublin. I recommend a warm coat and an umbrella, as it rains a little all day."


@pytest.mark.parametrize(
    ("history", "question", "answer", "expected"),
    [
        ((), "Weather in Helsinki?", "15°C", None),
        (BEFORE, "Weather in Paris?", "15°C", None),
        (BEFORE, "Weather in Helsinki tomorrow?", "15°C", None),
        (BEFORE, "Tell me a joke about Helsinki, the second longest you know", "15°C", None),
        ([("What should I wear?", ASKING_BACK)], "What should I wear?", COMPLETE, None),
        ([("What should I wear?", COMPLETE)], "What should I wear?", ASKING_BACK, 0.0),
        ([("What should I wear in Dublin?", COMPLETE)], "Again: what should I wear?", COMPLETE, 1.0),
        ([("What should I wear in Dublin?", COMPLETE)], "Sorry, what should I wear?", "Hm.", 0.0),
        ([("Wear what in Dublin?", COMPLETE), ("And in Rome?", "9 °C")], "Wear what?", COMPLETE, None),
        ([("I'm in Dublin.", "Fine."), ("Wear what?", COMPLETE)], "Wear what in Dublin?", COMPLETE, 1.0),
        ([("Wear what?", COMPLETE), ("Wear what?", ASKING_BACK)], "Wear what?", COMPLETE, 1.0),
        ([("Is Dublin windy?", COMPLETE)], "Do I need gloves in Dublin?", COMPLETE, None),
        ([("Tell me a joke?", COMPLETE)], "What is it?", COMPLETE, None),
    ],
)
def test_repeatability_compares_answers_to_like_questions_about_one_place(
    history: list[tuple[str, str]], question: str, answer: str, expected: float | None
) -> None:
    score = Repeatability().score(trial(answer, question, history=history))

    assert (0.7 if expected is None else expected, expected is None) == (score.value, score.neutral)


@pytest.mark.parametrize(
    ("before", "question", "expected"),
    [
        ("What's the weather in Paris?", "weather in Paris today?", False),
        ("What's the weather in Paris right now?", "How's Paris?", False),
        ("Please tell me the weather in Paris.", "What's the weather in Paris?", False),
        ("What's the weather in Paris?", "What's the weather in Paris tonight?", True),
        ("Do I need a coat in Paris?", "What's the weather in Paris?", True),
        ("I moved to Paris and I dislike the cold weather.", "What's the weather in Paris?", True),
        ("Love the weather in Paris!", "What's the weather in Paris?", True),
    ],
)
def test_now_is_no_other_time_and_a_statement_no_question(before: str, question: str, expected: bool) -> None:
    told = "It's 15 °C in Paris."

    assert expected == Repeatability().score(trial(told, question, history=[(before, told)])).neutral


def test_repeatability_compares_with_the_latest_like_question() -> None:
    history = [*BEFORE, ("Weather in Helsinki?", "It is 30°C and I suggest a hat."), ("Thanks", "Any time!")]

    score = Repeatability().score(trial("It is 30°C and I suggest a hat.", "Helsinki weather?", history=history))

    assert (1.0, "Weather in Helsinki?") == (score.value, score.details["compared_with"])
