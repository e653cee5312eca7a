from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from keval import Trial
from keval_metrics_basic import Contains

MakeTrial = Callable[..., Trial]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rain", "Rain, then sun"),
        ("rain", "sun/rain"),
        ("light rain", "Light\nrain today"),
        ("It is 25 °C.", "Well, it is 25 °C today"),
        ("25 °C", "(25 °C)"),
        ("°C", "25°C"),
        ("25", "25°C"),
        ("25", "25, or so."),
        ("-5", "it is −5 °C"),
        ("5", "3-5 days"),
        ("C++", "use C++, not C"),
        ("天気", "今日の天気は晴れ"),
        ("ABC", "ABC株式会社"),
        ("データ", "データベース"),
        ("ABC", "コーヒーABC"),
        ("อากาศ", "สภาพอากาศดี"),
        ("Łódź", "in łódź."),
    ],
)
def test_a_text_is_found(text: str, said: str, trial: MakeTrial) -> None:
    assert 1.0 == Contains(all_of=(text,)).score(trial(said)).value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rain", "the train"),
        ("rain", "rainy"),
        ("5", "2.5"),
        ("5", "5.25"),
        ("1", "1,500"),
        ("5", "it is −5 °C"),
        ("weather", "get_weather"),
        ("cafe", "cafe\u0301s"),
        ("rain today", "rain, today"),
        ("rain", ""),
    ],
)
def test_a_text_is_not_found(text: str, said: str, trial: MakeTrial) -> None:
    assert 0.0 == Contains(all_of=(text,)).score(trial(said)).value


@pytest.mark.parametrize(
    ("options", "value"),
    [
        ({"whole_words": False, "all_of": ("rain",)}, 1.0),
        ({"ignore_case": False, "all_of": ("Train",)}, 0.0),
        ({"ignore_punctuation": True, "all_of": ("train at 5",)}, 1.0),
        ({"ignore_whitespace": False, "all_of": ("the train",)}, 0.0),
        ({"all_of": ("train", "bus")}, 0.0),
        ({"any_of": ("train", "bus")}, 1.0),
        ({"any_of": ("tram", "bus")}, 0.0),
        ({"none_of": ("rain", "bus")}, 1.0),
        ({"none_of": ("train", "bus")}, 0.0),
        ({"all_of": ("train",), "any_of": ("5", "6"), "none_of": ("bus",)}, 1.0),
        ({"all_of": ("train",), "any_of": ("6", "7"), "none_of": ("bus",)}, 0.0),
    ],
)
def test_options_are_joined_by_and(options: dict[str, Any], value: float, trial: MakeTrial) -> None:
    assert value == Contains(**options).score(trial("Take the  train, at 5.", "bus")).value


def test_the_reference_is_one_phrase_or_a_list_of_which_all_must_be_there(trial: MakeTrial) -> None:
    said = trial("An umbrella and a coat", "umbrella and a coat", facts={"advice": ["coat", "umbrella", "boots"]})

    assert 1.0 == Contains().score(said).value
    assert "missing: 'boots'" == Contains(reference="facts.advice").score(said).reason


def test_the_reason_lists_every_fault_and_the_details_all_that_was_found(trial: MakeTrial) -> None:
    metric = Contains(all_of=("umbrella", "coat", "hat"), any_of=("sun", "snow"), none_of=("sorry", "as an AI"))

    score = metric.score(trial("Sorry, take a coat."))

    assert "missing: 'umbrella', 'hat'; none of 'sun', 'snow'; must not be there: 'sorry'" == score.reason
    assert {"found": ["coat"], "missing": ["umbrella", "hat"], "forbidden": ["sorry"]} == score.details


def test_the_reason_of_full_marks_names_what_was_found(trial: MakeTrial) -> None:
    score = Contains(any_of=("coat", "hat"), none_of=("sorry",)).score(trial("Take a coat."))

    assert "contains 'coat'; none of 'sorry'" == score.reason


@pytest.mark.parametrize("answer", [None, "", "?!"])
def test_without_a_text_to_look_for_the_answer_is_unscored(answer: str | None, trial: MakeTrial) -> None:
    score = Contains(ignore_punctuation=True).score(trial("Oslo", answer))

    assert score.value is None
    assert score.reason.endswith("or the metric `all_of`, `any_of` or `none_of`")


@pytest.mark.parametrize("name", ["all_of", "any_of", "none_of"])
@pytest.mark.parametrize("text", ["", " \n", "\u200b"])
def test_a_text_that_is_in_every_answer_is_refused(name: str, text: str) -> None:
    options: dict[str, Any] = {name: (text,)}

    with pytest.raises(ValueError, match=f"^'{name}' must hold texts of which normalisation leaves something"):
        Contains(**options)
