"""Time, tokens and turns, as they are and held to a limit."""

from __future__ import annotations

import math
from typing import Any

import pytest

from keval import Scale, Usage
from keval_metrics_basic.resources import Latency, Tokens, Turns
from tests.metrics.basic.conftest import make_trial as trial


@pytest.mark.parametrize(
    ("metric", "value", "reason"),
    [
        (Latency(), 3.5, "3.5 s"),
        (Latency(turn="last"), 1.25, "1.25 s"),
        (Latency(limit=3.5), 1.0, "3.5 s: within the limit of 3.5 s"),
        (Latency(limit=3), 0.0, "3.5 s: beyond the limit of 3 s"),
        (Tokens(), 1_234_600.0, "1234600 tokens"),
        (Tokens("input"), 1_234_567.0, "1234567 tokens"),
        (Tokens("output"), 33.0, "33 tokens"),
        (Tokens("output", limit=33), 1.0, "33 tokens: within the limit of 33 tokens"),
        (Tokens(limit=5), 0.0, "1234600 tokens: beyond the limit of 5 tokens"),
        (Turns(), 4.0, "4 model calls"),
        (Turns(limit=4), 1.0, "4 model calls: within the limit of 4 model calls"),
        (Turns(limit=3), 0.0, "4 model calls: beyond the limit of 3 model calls"),
    ],
)
def test_a_quantity_is_as_it_is_or_held_to_a_limit(metric: Any, value: float, reason: str) -> None:
    said = trial(
        turns=("And then?",),
        duration=3.5,
        turn_durations=(2.25, 1.25),
        usage=Usage(1_234_567, 33, 1_000_000, 3),
        model_calls=4,
    )

    score = metric.score(said)

    assert (value, reason) == (score.value, score.reason)


@pytest.mark.parametrize(
    ("metric", "unit"), [(Latency(), "s"), (Tokens(), "tokens"), (Turns(), "model calls")], ids=str
)
def test_less_is_better_and_there_is_no_upper_end(metric: Any, unit: str) -> None:
    assert Scale(0.0, math.inf, "lower", unit) == metric.scale


@pytest.mark.parametrize("metric", [Latency(limit=5), Tokens(limit=5), Turns(limit=5)], ids=str)
def test_with_a_limit_the_scale_is_the_usual_one(metric: Any) -> None:
    assert Scale() == metric.scale


def test_the_details_have_the_quantity_and_its_limit() -> None:
    said = trial(duration=2.0, usage=Usage(5, 6), model_calls=1)

    assert {"seconds": 2.0, "turn": "all", "limit": 5} == Latency(limit=5).score(said).details
    assert {"input": 5, "output": 6, "counted": "total"} == Tokens().score(said).details
    assert {"model_calls": 1} == Turns().score(said).details


@pytest.mark.parametrize(
    ("metric", "known", "reason"),
    [
        (Latency(), {}, "it is not known how long the trial took"),
        (Latency(), {"duration": math.nan}, "it is not known how long the trial took"),
        (Latency(), {"duration": -1.0}, "it is not known how long the trial took"),
        (Latency(turn="last"), {"duration": 2.0, "turns": ("And?",)}, "it is not known how long the last turn took"),
        (Tokens(), {"usage": Usage(5)}, "the agent did not report its output tokens"),
        (Tokens(), {"usage": Usage(-1, None)}, "the agent did not report its input and output tokens"),
        (Tokens(), {"usage": Usage(-1, 5)}, "the agent did not report its input tokens"),
        (Tokens("input"), {"usage": Usage(None, 5)}, "the agent did not report its input tokens"),
        (Turns(), {}, "the agent did not report how many model calls it took"),
    ],
)
def test_what_is_unknown_is_unscored(metric: Any, known: dict[str, Any], reason: str) -> None:
    score = metric.score(trial(**known))

    assert (None, reason) == (score.value, score.reason)


def test_a_total_is_the_last_turn_of_a_single_one() -> None:
    assert 2.0 == Latency(turn="last").score(trial(duration=2.0)).value


@pytest.mark.parametrize("metric", [Latency, Tokens, Turns])
def test_a_limit_is_more_than_nothing(metric: Any) -> None:
    with pytest.raises(ValueError, match="'limit' must be >"):
        metric(limit=0)
