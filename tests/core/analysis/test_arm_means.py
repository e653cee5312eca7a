"""The mean of each metric in each arm with its standard deviation over trials, and the rank of arms."""

from __future__ import annotations

import json
import statistics

import attrs
import pytest

from keval import Manifest, Run, Scale, open_run
from keval.analysis.arm_means import ArmMean, arm_means, ranking
from tests.conftest import Project

RATINGS = {
    "plain": {"q1": [0.2, 0.4], "q2": [0.9, 0.1], "q3": [0.5]},
    "docs": {"q1": [0.7, 0.7], "q2": [0.7], "q3": []},
}


@pytest.fixture
def run(project: Project) -> Run:
    """A run whose arms have some ratings more than once, some not at all."""
    answers = [
        {"id": name, "condition": condition, "repetition": number, "response": str(rating)}
        for condition, rated in RATINGS.items()
        for name, ratings in rated.items()
        for number, rating in enumerate(ratings, start=1)
    ]
    project.write(
        eval_yaml="""
            dataset: {path: questions.jsonl}
            agents: {old: {type: recorded, path: old.jsonl}}
            conditions: {plain: {}, docs: {}}
            metrics: [number/rating, basic/latency]
            execution: {num_repetitions: 2}
        """,
        questions_jsonl="".join(f'{{"id": "{name}", "question": "?"}}\n' for name in ("q1", "q2", "q3")),
        old_jsonl="".join(f"{json.dumps(each)}\n" for each in answers),
    )
    project.run("eval.yaml")
    return open_run(project.run_directory())


def test_means_and_deviations_are_over_trials(run: Run) -> None:
    found = {(each.condition, each.metric): each for each in arm_means(run)}

    for condition, rated in RATINGS.items():
        values = [rating for ratings in rated.values() for rating in ratings]
        each = found[condition, "number/rating"]
        assert len(values) == each.n
        assert pytest.approx(statistics.mean(values)) == each.mean
        assert pytest.approx(statistics.stdev(values), abs=1e-12) == each.sd
    assert (0, None, None) == attrs.astuple(found["docs", "basic/latency"])[4:]


def test_arms_are_ranked_by_the_primary_metrics_or_the_judges(run: Run) -> None:
    def ranked(manifest: Manifest, **values: tuple[float | None, ...]) -> list[tuple[str, int | None, float | None]]:
        means = [
            ArmMean("old", condition, *entry.scorer, 5, value, 0.1)
            for condition, found in values.items()
            for entry, value in zip(manifest.scorers, found, strict=True)
        ]
        return [(arm.condition, arm.rank, arm.value) for arm in ranking(manifest, means).arms]

    rating, latency = run.manifest.scorers
    judged = attrs.evolve(rating, metric="brevity", judge="wary", scale=Scale(1, 5))
    slow = attrs.evolve(run.manifest, primary=(latency.metric,))
    both = attrs.evolve(run.manifest, scorers=(rating, latency, judged))
    mixed = attrs.evolve(run.manifest, scorers=(rating, judged), primary=(rating.metric, judged.metric))

    assert [("docs", 1, 0.7), ("plain", 2, 0.2)] == ranked(run.manifest, plain=(0.2, 3.0), docs=(0.7, 9.0))
    assert [("plain", 1, 3.0), ("docs", 2, 9.0)] == ranked(slow, plain=(0.2, 3.0), docs=(0.7, 9.0))
    assert [("a", 1, 4.0), ("c", 1, 4.0), ("b", 3, 2.0), ("d", None, None)] == ranked(
        both, a=(0.1, 1.0, 4.0), b=(0.9, 1.0, 2.0), c=(0.2, 1.0, 4.0), d=(0.9, 1.0, None)
    )
    assert [("b", 1, 0.7), ("a", 2, 0.5)] == ranked(mixed, a=(0.5, 3.0), b=(0.4, 5.0))
