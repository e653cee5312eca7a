"""Equality, containment, patterns and similarity: what counts between an answer and what is expected."""

from __future__ import annotations

import time
from typing import Any, Literal

import pytest

from keval_metrics_basic import Contains
from keval_metrics_basic.answers import Equals, Regex, Similarity
from tests.metrics.basic.conftest import make_trial as trial


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
def test_what_does_not_count_by_default(said: str, answer: str) -> None:
    score = Equals().score(trial(said, answer))

    assert 1.0 == score.value


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("Oslo!", "Oslo"),
        ("git add .", "git add"),
        ("cd ..", "cd ."),
        ("ls ./", "ls /"),
        ("5", "-5"),
        ("It is Oslo", "Oslo"),
        ("", "Oslo"),
    ],
)
def test_what_counts(said: str, answer: str) -> None:
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
def test_options_say_what_counts(options: dict[str, Any], said: str, answer: str, value: float) -> None:
    assert value == Equals(**options).score(trial(said, answer)).value


def test_the_option_wins_over_the_reference_and_any_of_a_list_will_do() -> None:
    metric = Equals(expected=("Oslo", "Christiania"))

    score = metric.score(trial("christiania", "Bergen"))

    assert (1.0, "said 'christiania', as expected") == (score.value, score.reason)
    assert "Christiania" == score.details["matched"]


@pytest.mark.parametrize(
    ("fact", "said"), [("Oslo", "Oslo"), (["Bergen", "Oslo"], "oslo"), (25, "25"), (25.0, "25"), (True, "true")]
)
def test_the_reference_may_stand_elsewhere_in_the_sample(fact: Any, said: str) -> None:
    held = trial(said, "Bergen", facts={"capital": {"name": fact}}, metadata={"capital": fact})

    values = [Equals(reference=place).score(held).value for place in ("facts.capital.name", "metadata.capital")]

    assert [1.0, 1.0] == values


def test_the_reason_says_both() -> None:
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
def test_without_a_reference_the_answer_is_unscored(facts: dict[str, Any], missing: str) -> None:
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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rain", "Rain, then sun"),
        ("light rain", "Light\nrain today"),
        ("It is 25 °C.", "Well, it is 25 °C today"),
        ("°C", "25°C"),
        ("25", "25°C"),
        ("-5", "it is −5 °C"),
        ("5", "3-5 days"),
        ("C++", "use C++, not C"),
        ("天気", "今日の天気は晴れ"),
        ("ABC", "ABC株式会社"),
        ("ABC", "コーヒーABC"),
        ("อากาศ", "สภาพอากาศดี"),
        ("Łódź", "in łódź."),
    ],
)
def test_a_text_is_found(text: str, said: str) -> None:
    assert 1.0 == Contains(all_of=(text,)).score(trial(said)).value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rain", "the train"),
        ("rain", "rainy"),
        ("5", "2.5"),
        ("1", "1,500"),
        ("5", "it is −5 °C"),
        ("weather", "get_weather"),
        ("cafe", "cafe\u0301s"),
        ("rain today", "rain, today"),
    ],
)
def test_a_text_is_not_found(text: str, said: str) -> None:
    assert 0.0 == Contains(all_of=(text,)).score(trial(said)).value


@pytest.mark.parametrize(
    ("options", "value"),
    [
        ({"whole_words": False, "all_of": ("rain",)}, 1.0),
        ({"ignore_case": False, "all_of": ("Train",)}, 0.0),
        ({"ignore_punctuation": True, "all_of": ("train at 5",)}, 1.0),
        ({"ignore_whitespace": False, "all_of": ("the train",)}, 0.0),
        ({"all_of": ("train", "bus")}, 0.0),
        ({"any_of": ("tram", "bus")}, 0.0),
        ({"none_of": ("train", "bus")}, 0.0),
        ({"all_of": ("train",), "any_of": ("5", "6"), "none_of": ("bus",)}, 1.0),
        ({"all_of": ("train",), "any_of": ("6", "7"), "none_of": ("bus",)}, 0.0),
    ],
)
def test_options_are_joined_by_and(options: dict[str, Any], value: float) -> None:
    assert value == Contains(**options).score(trial("Take the  train, at 5.", "bus")).value


def test_the_reference_is_one_phrase_or_a_list_of_which_all_must_be_there() -> None:
    said = trial("An umbrella and a coat", "umbrella and a coat", facts={"advice": ["coat", "umbrella", "boots"]})

    assert 1.0 == Contains().score(said).value
    assert "missing: 'boots'" == Contains(reference="facts.advice").score(said).reason


def test_the_reason_lists_every_fault_and_the_details_all_that_was_found() -> None:
    metric = Contains(all_of=("umbrella", "coat", "hat"), any_of=("sun", "snow"), none_of=("sorry", "as an AI"))

    score = metric.score(trial("Sorry, take a coat."))

    assert "missing: 'umbrella', 'hat'; none of 'sun', 'snow'; must not be there: 'sorry'" == score.reason
    assert {"found": ["coat"], "missing": ["umbrella", "hat"], "forbidden": ["sorry"]} == score.details


def test_the_reason_of_full_marks_names_what_was_found() -> None:
    score = Contains(any_of=("coat", "hat"), none_of=("sorry",)).score(trial("Take a coat."))

    assert "contains 'coat'; none of 'sorry'" == score.reason


@pytest.mark.parametrize("answer", [None, "", "?!"])
def test_without_a_text_to_look_for_the_answer_is_unscored(answer: str | None) -> None:
    score = Contains(ignore_punctuation=True).score(trial("Oslo", answer))

    assert score.value is None
    assert score.reason.endswith("or the metric `all_of`, `any_of` or `none_of`")


@pytest.mark.parametrize("name", ["all_of", "any_of", "none_of"])
@pytest.mark.parametrize("text", ["", " \n", "\u200b"])
def test_a_text_that_is_in_every_answer_is_refused(name: str, text: str) -> None:
    options: dict[str, Any] = {name: (text,)}

    with pytest.raises(ValueError, match=f"^'{name}' must hold texts of which normalisation leaves something"):
        Contains(**options)


@pytest.mark.parametrize(
    ("options", "value"),
    [
        ({"pattern": r"\d+ °C"}, 1.0),
        ({"pattern": r"\d+ °F"}, 0.0),
        ({"pattern": r"\d+ °F", "absent": True}, 1.0),
        ({"pattern": r"\d+ °C", "absent": True}, 0.0),
        ({"pattern": r"\d+ °C", "full_match": True}, 0.0),
        ({"pattern": r".*\d+ °C", "full_match": True}, 1.0),
        ({"pattern": "OSLO"}, 0.0),
        ({"pattern": "OSLO", "ignore_case": True}, 1.0),
    ],
)
def test_a_pattern_is_found_as_the_options_say(options: dict[str, Any], value: float) -> None:
    assert value == Regex(**options).score(trial("Oslo: 25 °C")).value


def test_the_details_have_the_match_and_its_groups() -> None:
    score = Regex(pattern=r"(?P<high>\d+) °C(, (\d+) %)?").score(trial("Oslo: 25 °C"))

    assert r"'(?P<high>\d+) °C(, (\d+) %)?' matches '25 °C'" == score.reason
    assert {
        "pattern": r"(?P<high>\d+) °C(, (\d+) %)?",
        "matched": "25 °C",
        "groups": ["25", None, None],
        "named": {"high": "25"},
    } == score.details


@pytest.mark.parametrize(("reference", "value"), [(r"\d+", 1.0), ([r"x\d", r"\d+"], 1.0), (["x", "y"], 0.0)])
def test_a_reference_is_a_pattern_or_several_of_which_one_matches(reference: Any, value: float) -> None:
    assert value == Regex(reference="facts.p").score(trial("25", facts={"p": reference})).value


def test_the_golden_answer_is_read_as_a_pattern() -> None:
    assert 1.0 == Regex().score(trial("about 25", r"\d{2}")).value


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({}, "nothing to compare with: the sample has no facts.p; give it a pattern or a list of patterns, or"),
        ({"p": "("}, "facts.p of the sample is no pattern: missing ) at position 1 in '('"),
        ({"p": "(?a)(?u)x"}, "facts.p of the sample is no pattern: ASCII, LOCALE and UNICODE flags"),
        ({"p": "(" * 2000 + ")" * 2000}, "facts.p of the sample is no pattern: maximum recursion depth exceeded"),
        ({"p": "a" * 10_001}, "facts.p of the sample is no pattern: it has 10001 characters, more than 10000"),
    ],
)  # fmt: skip
def test_without_a_usable_pattern_the_answer_is_unscored(facts: dict[str, Any], reason: str) -> None:
    score = Regex(reference="facts.p").score(trial("25", facts=facts))

    assert score.value is None
    assert score.reason.startswith(reason)


def test_a_long_run_of_combining_marks_is_normalised_in_linear_time() -> None:
    marks = "a" + "\u0301\u0316" * 100_000

    began = time.process_time()
    score = Equals().score(trial(marks, marks))

    assert 1.0 == score.value
    assert time.process_time() - began < 10


@pytest.mark.parametrize("pattern", ["(a+)+$", r"(?b)(?:hello world foo){e<=8}", "(?R)"])
def test_a_catastrophic_pattern_ends_unscored_in_time(pattern: str) -> None:
    began = time.process_time()
    score = Regex(pattern=pattern, timeout=0.05).score(trial("a" * 500_000 + "!"))

    remedy = "make its repeats possessive or bounded, or raise `timeout`"
    assert (None, f"'{pattern}' was not done with the answer in 0.05 s; {remedy}") == (score.value, score.reason)
    assert time.process_time() - began < 10


@pytest.mark.parametrize("pattern", ["(", "*", "(?P<n>a", "a" * 10_001, r"\p{Nowhere}"])
def test_an_option_that_is_no_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"^'pattern' must be a regular expression: "):
        Regex(pattern=pattern)


def test_a_timeout_is_more_than_nothing() -> None:
    with pytest.raises(ValueError, match="'timeout' must be > 0"):
        Regex(timeout=0)


Measure = Literal["token_f1", "rouge_l"]


@pytest.mark.parametrize(("said", "value"), [("police kill the gunman", 0.75), ("the gunman kill police", 0.5)])
def test_rouge_l_of_the_examples_in_the_paper(said: str, value: float) -> None:
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
def test_token_f1_counts_shared_tokens_without_articles_and_punctuation(said: str, answer: str, value: float) -> None:
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
def test_tokens_in_any_script(measure: Measure, said: str, answer: str, value: float) -> None:
    assert value == Similarity(measure).score(trial(said, answer)).value


def test_only_rouge_l_minds_the_order() -> None:
    said = trial("rain in Oslo, sun in Rome", "sun in Rome, rain in Oslo")

    assert 1.0 == Similarity("token_f1").score(said).value
    assert 0.5 == Similarity("rouge_l").score(said).value


def test_the_most_similar_of_several_references_counts() -> None:
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


def test_rouge_l_reads_a_bounded_number_of_tokens() -> None:
    score = Similarity("rouge_l").score(trial("x " * 20_000 + "y", "x " * 20_000 + "z"))

    assert (1.0, True) == (score.value, score.details["cut"])


@pytest.mark.parametrize("fact", [None, "?!", ["rain", "..."], {"a": "b"}])
def test_without_words_to_compare_with_the_answer_is_unscored(fact: Any) -> None:
    score = Similarity(reference="facts.x").score(trial("rain", facts={"x": fact}))

    assert score.value is None
    assert "give it a text with words in it" in score.reason
