"""Ambiguity handling and repeatability: the document's rules and worked examples."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from keval import Trial
from keval_metrics_weather import AmbiguityHandling, Repeatability

MakeTrial = Callable[..., Trial]

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
        ("Weather?", "For example, ask about a city.", 0.7),
        ("Something about Oslo", "Hm.", 0.2),
        ("Foo bar", "Hm.", 0.2),
        ("Hi! What's the weather?", "Which city do you mean?", 1.0),
        ("Hello, should I take an umbrella?", "Which city do you mean?", 1.0),
        ("Thanks! And what's the weather?", "No idea.", 0.2),
        ("Thanks. What's the weather", "No idea.", 0.2),
        ("Hi, the weather please, thanks", "No idea.", 0.2),
    ],
)
def test_ambiguity_handling(question: str, answer: str, expected: float, trial: MakeTrial) -> None:
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
        ("Hi there, how are you?", ()),
        ("Thanks, I'll take the umbrella!", ()),
        ("Ok, thank you for the weather update, bye!", ()),
        ("Will it rain in Paris at 5pm?", ()),
        ("Will it rain in Paris at 17:30?", ()),
        ("Is it going to rain in Paris in the evening?", ()),
        ("Will it rain in Paris soon?", ()),
        ("Will it rain in Paris in the next hours?", ()),
    ],
)
def test_a_clear_message_is_neutral(question: str, history: list[tuple[str, str]], trial: MakeTrial) -> None:
    score = AmbiguityHandling().score(trial("Which city?", question, history=history))

    assert (0.5, True) == (score.value, score.neutral)


BEFORE = [("What's the weather in Helsinki?", "Temperature: 15°C. I recommend an umbrella.")]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Temperature: 15°C. I recommend an umbrella.", 1.0),  # the document's example
        ("Temperature: 17°C. I recommend an umbrella.", 1.0),
        ("Temperature: 25°C. I recommend an umbrella.", 0.7),
        ("No figures today. I recommend an umbrella.", 0.7),
        ("Temperature: 15°C. I recommend a scarf and boots.", 0.8),
        ("Temperature: 15°C, and that is all there is.", 0.5),
        ("Temperature: 15°C, I guess. I recommend an umbrella.", 0.9),
        ("15°C: umbrella!", 0.9),
        ("It feels like 9°C, at a temperature of 15°C. I recommend an umbrella.", 1.0),
        ("It feels like 15°C outside right now. I recommend an umbrella.", 0.7),
    ],
)
def test_repeatability(answer: str, expected: float, trial: MakeTrial) -> None:
    score = Repeatability().score(trial(answer, "Weather in Helsinki?", history=BEFORE))

    assert (expected, False) == (score.value, score.neutral)


@pytest.mark.parametrize(
    ("question", "history"),
    [
        ("Weather in Helsinki?", ()),
        ("Weather in Paris?", BEFORE),
        ("Weather in Helsinki tomorrow?", BEFORE),
        ("Tell me a joke about Helsinki, the second longest you know", BEFORE),
    ],
)
def test_repeatability_is_neutral_without_a_like_question(
    question: str, history: list[tuple[str, str]], trial: MakeTrial
) -> None:
    score = Repeatability().score(trial("15°C", question, history=history))

    assert (0.5, True) == (score.value, score.neutral)


def test_repeatability_compares_with_the_latest_like_question(trial: MakeTrial) -> None:
    history = [*BEFORE, ("Weather in Helsinki?", "It is 30°C and I suggest a hat."), ("Thanks", "Any time!")]

    score = Repeatability().score(trial("It is 30°C and I suggest a hat.", "Helsinki weather?", history=history))

    assert (1.0, "Weather in Helsinki?") == (score.value, score.details["compared_with"])
