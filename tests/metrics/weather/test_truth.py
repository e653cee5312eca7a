"""Reading the ground truth out of a sample's facts."""

from __future__ import annotations

from typing import Any

from keval_metrics_weather.truth import truth_of


def temperature(facts: dict[str, Any]) -> float | None:
    truth = truth_of(facts)
    return truth.temperature if truth else None


def test_facts_are_never_taken_for_others() -> None:
    # Facts that are gone may leave their address to the next ones.
    found = [temperature({"weather": {"current": {"temperature": number}}}) for number in range(500)]

    assert list(map(float, range(500))) == found


def test_facts_are_read_once() -> None:
    facts = {"weather": {"city": "Oslo", "current": {"temperature": 5}}}

    assert truth_of(facts) is truth_of(facts)
    assert truth_of(facts) is not truth_of(dict(facts))
