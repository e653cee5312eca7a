"""`keval report --table`: the plain table of means and standard deviations, and the arms ranked."""

from __future__ import annotations

import json
from statistics import mean, stdev

import pytest

from tests.conftest import Project

CONFIG = """
dataset: {path: questions.jsonl}
agents:
  one: {type: recorded, path: one.jsonl}
  two: {type: recorded, path: two.jsonl}
conditions: {plain: {}, docs: {}}
metrics: [double/length, basic/contains: {any_of: ["yes"]}]
"""
ANSWERS = {
    "one": {"plain": ["a" * 23, "a" * 81, "yes"], "docs": ["yes " + "a" * 60, "yes " + "a" * 80, "yes " + "a" * 17]},
    "two": {"plain": ["b" * 95, "b" * 95, "b" * 97], "docs": ["yes yes yes", "yes", "no" * 33]},
}


@pytest.fixture
def answered(project: Project) -> Project:
    lines = {
        agent: "".join(
            json.dumps({"id": f"q{number}", "condition": condition, "response": text}) + "\n"
            for condition, texts in conditions.items()
            for number, text in enumerate(texts)
        )
        for agent, conditions in ANSWERS.items()
    }
    project.write(
        eval_yaml=CONFIG,
        questions_jsonl="".join(json.dumps({"id": f"q{number}", "question": "?"}) + "\n" for number in range(3)),
        one_jsonl=lines["one"],
        two_jsonl=lines["two"],
    )
    assert 0 == project.keval("run", "eval.yaml", "-q").code
    return project


def test_means_and_deviations_are_those_of_the_answers_with_agents_side_by_side(answered: Project) -> None:
    lengths = [
        [len(text) / 100 for text in ANSWERS[agent][condition]] for condition in ("plain", "docs") for agent in ANSWERS
    ]

    printed = answered.keval("report", "latest", "--table", env={"COLUMNS": "100"})

    rows = [line.split() for line in printed.stdout.splitlines()]
    assert (0, ["plain", "docs"], ["one", "two", "one", "two"]) == (printed.code, rows[0], rows[1])
    row = next(row for row in rows if row[:1] == ["length"])
    figures = [cell for values in lengths for cell in (f"{mean(values):.2f}", "±", f"{stdev(values):.2f}")]
    assert figures == row[-12:]


def test_arms_are_ranked_by_the_mean_of_shares_or_by_the_primary_metrics(answered: Project) -> None:
    def ranked(*flags: str) -> list[str]:
        printed = answered.keval("report", *flags, "--table").stdout
        return [line.split("  ")[-1] for line in printed[printed.index("rank by") :].splitlines()[1:5]]

    by_all = ranked("latest")
    config = (answered.root / "eval.yaml").read_text(encoding="utf-8")
    (answered.root / "eval.yaml").write_text(f"primary: [basic/contains]\n{config}", encoding="utf-8")
    answered.keval("run", "eval.yaml", "-q")
    by_primary = ranked("latest")

    lengths, hits = (
        {
            f"{agent}, {condition}": mean(map(value, texts))
            for agent, of in ANSWERS.items()
            for condition, texts in of.items()
        }
        for value in (lambda text: len(text) / 100, lambda text: float("yes" in text))
    )
    assert sorted(hits, key=lambda arm: -(lengths[arm] + hits[arm])) == by_all
    assert sorted(hits, key=lambda arm: -hits[arm]) == by_primary
    assert by_all != by_primary


def test_metrics_stand_under_their_categories_in_parts_that_fit(answered: Project) -> None:
    answered.keval("score", "latest", "--metric", "weather/accuracy", "--metric", "weather/debuggability")

    wide, narrow = (
        answered.keval("report", "latest", "--table", env={"COLUMNS": columns}).stdout for columns in ("120", "60")
    )

    assert ["Functional performance", "Developer experience"] == [
        line for line in wide.splitlines() if line in {"Functional performance", "Developer experience"}
    ]
    assert 60 >= max(map(len, narrow.splitlines()))
    assert 2 == narrow.count("Developer experience")


def ranking(project: Project, config: str, answers: dict[str, str], **sample: object) -> list[str]:
    """The lines of the ranking of a run with these answers by condition to one question."""
    project.write(
        eval_yaml=f"""
dataset: {{path: questions.jsonl}}
agents: {{old: {{type: recorded, path: old.jsonl}}}}
conditions: {{{", ".join(f"{name}: {{}}" for name in answers)}}}
{config}
""",
        questions_jsonl=json.dumps({"id": "q", "question": "?", **sample}) + "\n",
        old_jsonl="".join(
            json.dumps({"id": "q", "condition": name, "response": text}) + "\n" for name, text in answers.items()
        ),
    )
    assert 0 == project.keval("run", "eval.yaml", "-q").code
    printed = project.keval("report", "latest", "--table").stdout
    return [line.strip() for line in printed[printed.index("rank by") :].splitlines()[1 : 1 + len(answers)]]


def test_the_share_of_a_scale_is_counted_from_its_worse_end(project: Project) -> None:
    answers = {"much": "a" * 90, "little": "a" * 10, "some": "a" * 40}

    ranked = ranking(project, "baseline: much\nmetrics: [number/waste]", answers)

    assert ["1  0.90  old, little", "2  0.60  old, some", "3  0.10  old, much"] == ranked


def test_a_rubric_counts_once_however_many_judges_grade_it(project: Project) -> None:
    config = """
baseline: plain
judges: {kind: {type: reader, key: kind}, strict: {type: reader, key: strict}}
rubrics: [double/brevity]
"""

    ranked = ranking(project, config, {"plain": ".", "docs": "."}, kind=3, strict=1)

    assert ["1  0.50  old, plain", "2  0.50  old, docs"] == ranked
