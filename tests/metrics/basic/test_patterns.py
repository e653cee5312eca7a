from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from keval import Trial
from keval_metrics_basic import Regex

MakeTrial = Callable[..., Trial]


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
def test_options(options: dict[str, Any], value: float, trial: MakeTrial) -> None:
    assert value == Regex(**options).score(trial("Oslo: 25 °C")).value


def test_the_details_have_the_match_and_its_groups(trial: MakeTrial) -> None:
    score = Regex(pattern=r"(?P<high>\d+) °C(, (\d+) %)?").score(trial("Oslo: 25 °C"))

    assert r"'(?P<high>\d+) °C(, (\d+) %)?' matches '25 °C'" == score.reason
    assert {
        "pattern": r"(?P<high>\d+) °C(, (\d+) %)?",
        "matched": "25 °C",
        "groups": ["25", None, None],
        "named": {"high": "25"},
    } == score.details


@pytest.mark.parametrize(("reference", "value"), [(r"\d+", 1.0), ([r"x\d", r"\d+"], 1.0), (["x", "y"], 0.0)])
def test_a_reference_is_a_pattern_or_several_of_which_one_matches(
    reference: Any, value: float, trial: MakeTrial
) -> None:
    assert value == Regex(reference="facts.p").score(trial("25", facts={"p": reference})).value


def test_the_golden_answer_is_read_as_a_pattern(trial: MakeTrial) -> None:
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
def test_without_a_usable_pattern_the_answer_is_unscored(facts: dict[str, Any], reason: str, trial: MakeTrial) -> None:
    score = Regex(reference="facts.p").score(trial("25", facts=facts))

    assert score.value is None
    assert score.reason.startswith(reason)


@pytest.mark.parametrize("pattern", ["(a+)+$", r"(?b)(?:hello world foo){e<=8}", "(?R)"])
def test_a_catastrophic_pattern_ends_unscored(pattern: str, trial: MakeTrial) -> None:
    score = Regex(pattern=pattern, timeout=0.05).score(trial("a" * 500_000 + "!"))

    remedy = "make its repeats possessive or bounded, or raise `timeout`"
    assert (None, f"'{pattern}' was not done with the answer in 0.05 s; {remedy}") == (score.value, score.reason)


@pytest.mark.parametrize("pattern", ["(", "*", "(?P<n>a", "a" * 10_001, r"\p{Nowhere}"])
def test_an_option_that_is_no_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"^'pattern' must be a regular expression: "):
        Regex(pattern=pattern)


def test_a_timeout_is_more_than_nothing() -> None:
    with pytest.raises(ValueError, match="'timeout' must be > 0"):
        Regex(timeout=0)
