"""Options are checked where the config stands, and every metric scores on the document's bands."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from keval.records.scores import named_band
from keval.seams import registry
from keval_metrics_weather import Accuracy
from keval_metrics_weather.tool_use import ResponseTime, ToolCallCount
from tests.conftest import Project

METRICS = [registry.load(each) for each in registry.select("keval.metrics", "weather")]
NUMBERS = [
    (metric, field.name)
    for metric in METRICS
    for field in attrs.fields(metric)
    if isinstance(field.default, int | float) and field.name != "cold"  # °C may be negative
]
CONFIG = """
dataset: {path: questions.jsonl}
agents: {scripted: {}}
conditions: {baseline: {}}
metrics:
"""


@pytest.mark.parametrize(("metric", "name"), NUMBERS)
@pytest.mark.parametrize("wrong", [-0.1, float("nan")])
def test_no_number_may_be_negative(metric: Any, name: str, wrong: float) -> None:
    with pytest.raises(ValueError, match=f"^'{name}' must be >= 0: "):
        metric(**{name: wrong})


@pytest.mark.parametrize(
    ("metric", "options", "message"),
    [
        (ResponseTime, {"good": 1.0}, "'good' must be more than 'excellent', which is 2: 1"),
        (ResponseTime, {"good": 2.0}, "'good' must be more than 'excellent', which is 2: 2"),
        (ResponseTime, {"excellent": 3.0, "acceptable": 4.0}, "'acceptable' must be more than 'good', which is 5: 4"),
        (ResponseTime, {"slowest": 10.0}, "'slowest' must be more than 'acceptable', which is 10: 10"),
        (ToolCallCount, {"optimal": 5}, "'good' must be more than 'optimal', which is 5: 4"),
        (Accuracy, {"tolerance": 0.5}, "'tolerance' must be at least 'rounding', which is 1: 0.5"),
    ],
)
def test_thresholds_rise(metric: Any, options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        metric(**options)


def test_thresholds_may_meet_where_nothing_lies_between_them() -> None:
    assert (1.0, 1.0) == attrs.astuple(Accuracy(rounding=1.0, tolerance=1.0))[:2]


def test_a_wrong_option_is_shown_where_it_stands(project: Project) -> None:
    metrics = """\
  - weather/accuracy: {tolerance: -0.1}
  - weather/response_time:
      excellent: 2.0
      good: 1.0
  - weather/repeatability: {similarity: 2}
"""
    project.write(eval_yaml=CONFIG + metrics, questions_jsonl='{"id": "a", "question": "How?"}\n')

    outcome = project.keval("validate", "eval.yaml")

    assert 2 == outcome.code
    assert [
        "error: eval.yaml:5:35: 'tolerance' must be >= 0: -0.1 (metric 'weather/accuracy')",
        "error: eval.yaml:8:13: 'good' must be more than 'excellent', which is 2: 1 (metric 'weather/response_time')",
        "error: eval.yaml:9:41: 'similarity' must be <= 1: 2.0 (metric 'weather/repeatability')",
    ] == outcome.stderr.splitlines()


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.0, "poor"), (0.35, "poor"), (0.4, "acceptable"), (0.65, "acceptable"), (0.7, "good"), (0.89, "good"),
     (0.9, "excellent"), (1.0, "excellent")],
)  # fmt: skip
def test_every_metric_scores_on_the_documents_bands(metric: Any, value: float, expected: str) -> None:
    assert (expected, False) == (named_band(metric.scale.bands, value), "scale" in attrs.fields_dict(metric))
