"""Judging what samples expect, through a real gateway: what the model is sent, and how its replies are read."""

from __future__ import annotations

from typing import Any

import attrs
import jsonschema
import pytest

from keval import Message, Sample, ToolCall, Transcript, Trial
from keval.records.end_state import EndState, FileChange
from keval_judges.expectations import expectations
from tests.judges.llm.conftest import ACCURACY, Grade

TRIAL = Trial(
    "t1",
    Sample("s1", "Make a chart.", "A bar chart", metadata={"expectations": ["It has three bars", "It is labelled"]}),
    "some-agent",
    "some-condition",
    1,
    Transcript(
        (Message("user", "Make a chart."), Message("assistant", "Done: chart.svg")),
        (ToolCall("plot", {"kind": "bar"}, "3 bars"),),
        tools=("plot",),
        end_state=EndState((FileChange("chart.svg", "added"),), diff="+<svg><rect/></svg>"),
    ),
)
HOLDS = {"evidence": "plot returned 3 bars", "holds": True}
FAILS = {"evidence": "no label in the difference", "holds": False}
GOOD: dict[str, Any] = {"expectation_1": HOLDS, "expectation_2": FAILS}
LEVELS = {"accuracy": {"reasoning": "Half right.", "score": 2}, "unverified_claims": []}


@pytest.mark.parametrize("vendor", ["openai", "anthropic"])
def test_each_expectation_gets_a_verdict_and_the_share_is_the_score(grade: Grade, vendor: str) -> None:
    outcome = grade([LEVELS, GOOD], vendor, trial=TRIAL, rubrics=[ACCURACY, expectations])

    score = outcome.scores["expectations"]
    assert (0.5, 2.0) == (score.value, outcome.scores["accuracy"].value)
    assert "1 of 2 expectations hold; not “It is labelled”: no label in the difference" == score.reason
    held = [{"text": "It has three bars", **HOLDS}, {"text": "It is labelled", **FAILS}]
    assert {"expected": held} == score.details
    sent = outcome.requests[-1]
    for text in ("1. It has three bars", "3 bars", "added: chart.svg", "+<svg><rect/></svg>", "A bar chart", "Done:"):
        assert text in sent.messages[-1].text


@pytest.mark.parametrize("bad", [{"expectation_1": HOLDS}, {**GOOD, "expectation_2": {"holds": "yes"}}])
def test_a_reply_without_a_verdict_is_asked_for_once_more(grade: Grade, bad: Any) -> None:
    again = grade([bad, GOOD], "openai", trial=TRIAL, rubrics=[expectations])
    never = grade([bad, bad], "openai", trial=TRIAL, rubrics=[expectations])

    assert 0.5 == again.scores["expectations"].value
    assert "expectation_2 has no `holds` that is true or false" in str(never.errors["expectations"])


def test_a_sample_that_expects_nothing_is_unscored_without_a_request(grade: Grade) -> None:
    trial = attrs.evolve(TRIAL, sample=attrs.evolve(TRIAL.sample, metadata={}))

    outcome = grade([], "openai", trial=trial, rubrics=[expectations])

    score = outcome.scores["expectations"]
    assert (None, "the sample has no list of `expectations` in its metadata") == (score.value, score.reason)


def test_the_schema_takes_what_is_asked_for(grade: Grade) -> None:
    from keval_judges.expectations import ExpectationsRequest

    asked = ExpectationsRequest.of(TRIAL, [expectations], 4)

    jsonschema.validate(GOOD, asked.sheet.schema)
    assert "[cut here: 4 of 19 characters are shown]" in asked.message
