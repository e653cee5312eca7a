from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from keval import Trial
from keval_metrics_basic import Equals

MakeTrial = Callable[..., Trial]


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("Oslo", "Oslo"),
        ("  OSLO\n", "oslo"),
        ("Oslo.", "Oslo"),
        ("Oslo", "Oslo."),
        ("二十五。", "二十五"),
        ("25 °C\n\nand  rain", "25 °C and rain"),
        ("−5", "-5"),
        ("“It’s 5 – 7”", '"It\'s 5 - 7"'),
        ("Stra\u00dfe", "STRASSE"),
        ("\uff25\uff55\uff52\uff4f", "Euro"),
        ("e\u0301te\u0301", "été"),
        ("5\xa0km", "5 km"),
        ("Os\u00adlo\ufeff", "Oslo"),
        ("ΐ", "\u03aa\u0301"),
    ],
)
def test_what_does_not_count_by_default(said: str, answer: str, trial: MakeTrial) -> None:
    score = Equals().score(trial(said, answer))

    assert 1.0 == score.value


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("Oslo!", "Oslo"),
        ("Oslo...", "Oslo"),
        ("git add .", "git add"),
        ("cd ..", "cd ."),
        ("ls ./", "ls /"),
        ("rm a/.", "rm a/"),
        ("5", "-5"),
        ("35", "3.5"),
        ("It is Oslo", "Oslo"),
        ("", "Oslo"),
    ],
)
def test_what_counts(said: str, answer: str, trial: MakeTrial) -> None:
    score = Equals().score(trial(said, answer))

    assert 0.0 == score.value


@pytest.mark.parametrize(
    ("options", "said", "answer", "value"),
    [
        ({"ignore_case": False}, "oslo", "Oslo", 0.0),
        ({"ignore_whitespace": False}, "5  km", "5 km", 0.0),
        ({"ignore_punctuation": True}, "**Oslo**, Norway!", "Oslo Norway", 1.0),
        ({"ignore_punctuation": True}, "the U.S. isn't well-known", "The US isnt well known", 1.0),
        ({"ignore_punctuation": True}, "`get_weather`", "get weather", 1.0),
        ({"ignore_punctuation": True}, "35", "3.5", 0.0),
        ({"ignore_punctuation": True}, "3 5", "3.5", 0.0),
        ({"ignore_punctuation": True}, "5", "-5", 0.0),
        ({"ignore_punctuation": True}, "3-5", "3 5", 1.0),
        ({"ignore_punctuation": True}, "5", "5%", 0.0),
    ],
)
def test_options_say_what_counts(
    options: dict[str, Any], said: str, answer: str, value: float, trial: MakeTrial
) -> None:
    assert value == Equals(**options).score(trial(said, answer)).value


def test_the_option_wins_over_the_reference_and_any_of_a_list_will_do(trial: MakeTrial) -> None:
    metric = Equals(expected=("Oslo", "Christiania"))

    score = metric.score(trial("christiania", "Bergen"))

    assert (1.0, "said 'christiania', as expected") == (score.value, score.reason)
    assert "Christiania" == score.details["matched"]


@pytest.mark.parametrize(
    ("fact", "said"), [("Oslo", "Oslo"), (["Bergen", "Oslo"], "oslo"), (25, "25"), (25.0, "25"), (True, "true")]
)
def test_the_reference_may_stand_elsewhere_in_the_sample(fact: Any, said: str, trial: MakeTrial) -> None:
    held = trial(said, "Bergen", facts={"capital": {"name": fact}}, metadata={"capital": fact})

    values = [Equals(reference=place).score(held).value for place in ("facts.capital.name", "metadata.capital")]

    assert [1.0, 1.0] == values


def test_the_reason_says_both(trial: MakeTrial) -> None:
    score = Equals(expected=("Oslo", "Bergen")).score(trial("It is\nParis"))

    assert "said 'It is Paris', expected any of 'Oslo', 'Bergen'" == score.reason
    assert {"answer": "It is Paris", "expected": ["Oslo", "Bergen"], "matched": None} == score.details


@pytest.mark.parametrize(
    ("facts", "missing"),
    [
        ({}, "the sample has no facts.x"),
        ({"x": " "}, "the sample has no facts.x"),
        ({"x": []}, "the sample has no facts.x"),
        ({"x": {"a": 1}}, "facts.x of the sample is not a text or a list of texts"),
        ({"x": ["a", {"b": 1}]}, "facts.x of the sample is not a text or a list of texts"),
    ],
)
def test_without_a_reference_the_answer_is_unscored(facts: dict[str, Any], missing: str, trial: MakeTrial) -> None:
    score = Equals(reference="facts.x").score(trial("Oslo", facts=facts))

    remedy = "give it a text or a list of texts, or the metric `expected`"
    assert (None, f"nothing to compare with: {missing}; {remedy}") == (score.value, score.reason)


@pytest.mark.parametrize("place", ["facts", "facts.", "facts..a", "fact.a", "answers", "", "metadata.a."])
def test_a_reference_that_is_no_place_is_refused(place: str) -> None:
    with pytest.raises(ValueError, match=r"^'reference' must be answer, facts\.<key> or metadata\.<key>, got "):
        Equals(reference=place)


def test_an_empty_list_is_refused() -> None:
    with pytest.raises(ValueError, match="'expected' must hold at least one text"):
        Equals(expected=())
