"""The developer-experience metrics: the document's two frameworks, and a third."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from keval_metrics_weather.experience import Debuggability, ImplementationEffort, IntegrationSimplicity
from tests.metrics.weather.conftest import make_trial as trial

Rated = ImplementationEffort | IntegrationSimplicity | Debuggability

GADK = {
    "files": 5,
    "setup": "medium",
    "code": "medium",
    "tool_files": 2,
    "memory": "built-in",
    "errors": "framework",
    "logging": "framework",
    "documentation": "comprehensive",
}
MS = {
    "files": 4,
    "setup": "low",
    "code": "low",
    "tool_files": 1,
    "memory": "manual",
    "errors": "manual",
    "logging": "basic",
    "documentation": "moderate",
}
THIRD = {
    "files": 3,
    "setup": "high",
    "tool_files": 5,
    "memory": "built-in",
    "logging": "basic",
    "documentation": "minimal",
}


@pytest.mark.parametrize(
    ("metric", "gadk", "ms", "third"),
    [
        (ImplementationEffort(), 0.0, 1.0, 0.4),
        (IntegrationSimplicity(), 0.8, 0.7, 0.7),
        (Debuggability(), 1.0, 0.35, 0.4),
    ],
)
def test_frameworks_are_rated_by_their_characteristics(metric: Rated, gadk: float, ms: float, third: float) -> None:
    scores = [metric.score(trial("15°C", characteristics=known)).value for known in (GADK, MS, THIRD)]

    assert [gadk, ms, third] == scores


@pytest.mark.parametrize("metric", [ImplementationEffort(), IntegrationSimplicity(), Debuggability()])
@pytest.mark.parametrize("unknown", [None, {}, {"learning": "low"}])
def test_an_unknown_framework_is_neutral(metric: Rated, unknown: Mapping[str, Any] | None) -> None:
    score = metric.score(trial("15°C", characteristics=unknown))

    assert (0.5, True) == (score.value, score.neutral)


def test_a_descriptive_error_message_counts_for_debuggability() -> None:
    descriptive = "I couldn't reach the weather service: it timed out after 10 seconds."

    scores = [Debuggability().score(trial(said, characteristics=MS)).value for said in (descriptive, "Sorry.")]

    assert [0.45, 0.35] == scores


def test_effort_is_shown_with_what_it_is_made_of() -> None:
    score = ImplementationEffort().score(trial("15°C", characteristics=GADK))

    assert "5 files, medium setup, medium code complexity: effort 1" == score.reason
