from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import pytest

from keval import Trial
from keval_metrics_basic import Similarity

MakeTrial = Callable[..., Trial]
Measure = Literal["token_f1", "rouge_l"]


@pytest.mark.parametrize(("said", "value"), [("police kill the gunman", 0.75), ("the gunman kill police", 0.5)])
def test_rouge_l_of_the_examples_in_the_paper(said: str, value: float, trial: MakeTrial) -> None:
    assert value == Similarity("rouge_l").score(trial(said, "police killed the gunman")).value


@pytest.mark.parametrize(
    ("said", "answer", "value"),
    [
        ("The Denver Broncos!", "Denver Broncos", 1.0),
        ("Broncos, Denver", "a Denver Broncos", 1.0),
        ("Denver", "Denver Broncos", 0.666667),
        ("the Carolina Panthers", "Denver Broncos", 0.0),
        ("rain rain rain", "rain", 0.5),
        ("rain rain", "rain rain sun", 0.8),
        ("the U.S.", "US", 1.0),
        ("", "Denver", 0.0),
    ],
)
def test_token_f1_counts_shared_tokens_without_articles_and_punctuation(
    said: str, answer: str, value: float, trial: MakeTrial
) -> None:
    assert value == Similarity().score(trial(said, answer)).value


@pytest.mark.parametrize("measure", ["token_f1", "rouge_l"])
@pytest.mark.parametrize(
    ("said", "answer", "value"),
    [
        ("25°C", "25 °C", 1.0),
        ("35", "3.5", 0.0),
        ("-5", "5", 0.0),
        ("well-known", "well known", 1.0),
        ("ŁÓDŹ", "łódź", 1.0),
        ("今日は雨", "今日は晴", 0.75),
        ("Tokyoは雨", "tokyo 雨", 0.8),
        ("👍", "👍", 1.0),
        ("A.", "A", 1.0),
        ("B", "A", 0.0),
    ],
)
def test_tokens_in_any_script(measure: Measure, said: str, answer: str, value: float, trial: MakeTrial) -> None:
    assert value == Similarity(measure).score(trial(said, answer)).value


def test_only_rouge_l_minds_the_order(trial: MakeTrial) -> None:
    said = trial("rain in Oslo, sun in Rome", "sun in Rome, rain in Oslo")

    assert 1.0 == Similarity("token_f1").score(said).value
    assert 0.5 == Similarity("rouge_l").score(said).value


def test_the_most_similar_of_several_references_counts(trial: MakeTrial) -> None:
    said = trial("light rain", facts={"right": ["sun", "heavy rain and light snow", "light rain today"]})

    score = Similarity(reference="facts.right").score(said)

    shares = "precision 1.00, recall 0.67"
    assert f"2 of 2 words shared in any order with the 3 of 'light rain today': {shares}" == score.reason
    assert {
        "measure": "token_f1",
        "shared": 2,
        "answer_tokens": 2,
        "reference_tokens": 3,
        "precision": 1.0,
        "recall": 0.666667,
        "reference": "light rain today",
        "cut": False,
    } == score.details


def test_rouge_l_reads_a_bounded_number_of_tokens(trial: MakeTrial) -> None:
    score = Similarity("rouge_l").score(trial("x " * 20_000 + "y", "x " * 20_000 + "z"))

    assert (1.0, True) == (score.value, score.details["cut"])


@pytest.mark.parametrize("fact", [None, "?!", ["rain", "..."], {"a": "b"}])
def test_without_words_to_compare_with_the_answer_is_unscored(fact: Any, trial: MakeTrial) -> None:
    score = Similarity(reference="facts.x").score(trial("rain", facts={"x": fact}))

    assert score.value is None
    assert "give it a text with words in it" in score.reason
