"""`keval check`: the runs that it makes, what it says of them, and its bounds, through the command line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from keval_testing import Project

CONFIG = """
dataset: {path: questions.jsonl, cluster_key: source}
agents: {echo: {type: testing/echo}}
conditions: {baseline: {}, with_docs: {}}
metrics: [testing/words]
judges: {it: {type: planted/judge, lenient: 2}}
rubrics: [factual_adherence]
gates: ["testing/words >= 1000"]
check:
  samples: 12
  repetitions: 2
  bounds: ["detection of factual_adherence by it >= 0.99", golden of factual_adherence by it >= 0.9, "leaks <= 1000"]
"""
FACTS = "The server Tarn listens on port {}. Set `listen_port` in its file, and do not reload it before that is done."


def question(number: int, **other: Any) -> dict[str, Any]:
    asked = {
        "id": f"q{number}",
        "question": f"How does one change port {number}?",
        "answer": FACTS.format(7000 + number),
    }
    return {**asked, **other}


def write(project: Project, *questions: dict[str, Any], config: str = CONFIG) -> None:
    project.write("eval.yaml", config)
    project.write("questions.jsonl", "".join(json.dumps(each) + "\n" for each in questions))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project.new(tmp_path)
    write(project, *map(question, range(13)), question(13, source="one"))
    return project


def figures(examined: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return {
        ", ".join(figure["of"].values()): figure["value"]
        for each in examined
        for figure in each["figures"]
        if figure["name"] == name
    }


@pytest.mark.slow
def test_a_lenient_judge_breaks_its_bound_and_the_runs_are_examined_again_without_asking(project: Project) -> None:
    outcome = project.keval("check", "eval.yaml", "--json")
    checked = outcome.data
    asked = Path(checked["runs"]["asked"])
    again = [project.keval("check", place, "--json") for place in (asked.name, str(asked.parent))]
    narrow = project.keval("check", asked.name, env={"COLUMNS": "60"}).stdout

    assert 1 == outcome.code, outcome.stderr
    assert {"asked", "damaged", "restyled"} == checked["runs"].keys()
    assert ["verify", "golden", "repeats", "bias", "leaks", "samples"] == [
        each["examination"] for each in checked["examined"]
    ]
    assert [False, True, True] == [bound["met"] for bound in checked["bounds"]]
    judge = "factual_adherence by it"
    assert 1.0 == figures(checked["examined"], "golden")[judge]
    assert 0.0 == figures(checked["examined"], "detection")[f"{judge}, number-1"]
    assert 1.0 == figures(checked["examined"], "detection")[f"{judge}, empty"]
    for each in again:
        assert [False, True, True] == [bound["met"] for bound in each.data["bounds"]]
        assert checked["examined"][1] == each.data["examined"][1]
    tables = [line for line in narrow.partition("\nruns ")[0].splitlines() if line.startswith("  ")]
    assert max(map(len, tables)) <= 60
    listed = project.keval("list", "--json").data
    assert 3 == len(listed) == len({each["run"] for each in listed})
    shutil.rmtree(project.root / checked["runs"]["damaged"])
    (rest,) = project.keval("check", asked.name, "--only", "golden", "--json").data["examined"]
    assert f"there is no run {checked['runs']['damaged']} any more" == rest["reason"]


def test_the_runs_of_a_check_ask_no_more_than_it_says_and_have_no_gates(project: Project) -> None:
    outcome = project.keval("check", "eval.yaml", "--only", "samples", "--samples", "5", "--json")
    (run,) = outcome.data["runs"].values()
    report = project.keval("report", run, "--json")

    assert (0, 0) == (outcome.code, report.code)
    assert 5 * 2 * 2 == report.data["planned"]
    assert [] == report.data["gates"]
    manifest = json.loads((Path(project.root) / run / "manifest.json").read_text(encoding="utf-8"))
    assert (True, True) == (manifest["recording"] is not None, manifest["config"]["execution"]["keep_requests"])


def test_the_budget_is_for_all_runs_together_and_by_default_that_of_the_evaluation(project: Project) -> None:
    project.write("eval.yaml", CONFIG + "budget: {trials: 100}\n")

    outcome = project.keval("check", "eval.yaml", "--json")
    told = {each["examination"]: each["reason"] for each in outcome.data["examined"]}

    assert {"damaged"} == outcome.data["runs"].keys()
    assert "the budget of the check has no trials left; see `check.budget`" == told["repeats"]
    assert told["repeats"] == outcome.data["bounds"][2]["reason"]

    unable = project.keval("check", "eval.yaml", "--budget", "usd=0", "--json")
    again = project.keval("check", "results/eval-check", "--json")

    assert {} == unable.data["runs"]
    assert outcome.data["runs"] == again.data["runs"]


def test_samples_that_tell_nothing_are_named(project: Project) -> None:
    asked = "How does one change the port on which the server listens?"
    write(
        project,
        question(1, question=asked),
        question(2, question=f"{asked} Please?"),
        question(3, question=asked.upper().replace("?", ".")),
        question(4, question="Is it raining?", answer="Rain?", source="sky"),
    )

    outcome = project.keval("check", "eval.yaml", "--only", "samples", "--samples", "1", "--json")
    (examined,) = outcome.data["examined"]

    assert ["asks nearly the same as 'q1'; leave one out, as the two count as independent questions"] == [
        defect["problem"] for defect in examined["defects"] if defect["sample"] == "q2" and "asks" in defect["problem"]
    ]
    assert ["asks the same as 'q1', with another golden answer; correct one of them"] == [
        defect["problem"] for defect in examined["defects"] if defect["sample"] == "q3" and "'q1'" in defect["problem"]
    ]
    assert 0.75 == figures([examined], "duplicates")[""]
    assert 1.0 == figures([examined], "saturated")["factual_adherence by it"]
    assert 1 == sum("every arm gets the best value" in defect["problem"] for defect in examined["defects"])


def test_questions_without_a_word_are_copies_only_if_their_signs_are_the_same(project: Project) -> None:
    signs = ("☀️?", "🌧️?", "🌧️?")
    write(project, *(question(number, question=each, source="sky") for number, each in enumerate(signs, 1)))

    outcome = project.keval("check", "eval.yaml", "--only", "samples", "--samples", "1", "--json")
    (examined,) = outcome.data["examined"]

    told = [(each["sample"], each["problem"]) for each in examined["defects"] if "asks" in each["problem"]]
    assert ["q3"] == [sample for sample, _ in told]
    assert told[0][1].startswith("asks the same as 'q2'")


@pytest.mark.parametrize(
    ("bound", "met", "told"),
    [
        ("duplicates >= 0.5", False, "0.00"),
        ("saturated of factual_adherence by it <= 1", True, "factual_adherence by it 1.00"),
        ("saturated of factual_adherence by it, other <= 1", False, "no such figure was found"),
        ("noisy <= 1", False, "no value: no question has two repetitions in each of two arms"),
        (
            "saturated of factual_adherence <= 1",
            False,
            "no such figure was found; did you mean 'factual_adherence by it'?",
        ),
        ("detection >= 0.5", None, None),
    ],
)
def test_a_bound_is_met_by_every_figure_that_it_is_about(
    project: Project, bound: str, met: bool | None, told: str | None
) -> None:
    project.write("eval.yaml", CONFIG.partition("check:")[0] + f'check: {{samples: 2, bounds: ["{bound}"]}}\n')

    outcome = project.keval("check", "eval.yaml", "--only", "samples", "--repetitions", "1", "--json")

    found = [(each["met"], each["reason"]) for each in outcome.data["bounds"]]
    assert (int(met is False), [] if told is None else [met]) == (outcome.code, [each for each, _ in found])
    assert all(told in reason for _, reason in found if told is not None)
    assert all("did you mean" not in reason for _, reason in found if "did you mean" not in (told or ""))


@pytest.mark.parametrize(
    ("bound", "told"),
    [
        ("detecton >= 0.8", "eval.yaml:8:18: no figure named 'detecton'; did you mean 'detection'?"),
        ("detection > 0.8", "eval.yaml:8:18: expected a bound such as 'detection >= 0.8'"),
        ("detection >= high", "eval.yaml:8:18: expected a bound such as"),
    ],
)
def test_a_bound_that_is_none_is_told_before_anything_is_asked(project: Project, bound: str, told: str) -> None:
    project.write("eval.yaml", CONFIG.partition("check:")[0] + f'check: {{bounds: ["{bound}"]}}\n')

    outcome = project.keval("check", "eval.yaml")

    assert 2 == outcome.code
    assert told in outcome.stderr
    assert not (project.root / "results").exists()


@pytest.mark.parametrize(
    ("questions", "config", "expected"),
    [
        ([question(1)], CONFIG, {"golden": None, "repeats": None, "bias": None, "samples": None}),
        (
            [question(number, answer=None) for number in range(3)],
            CONFIG,
            {"golden": "no sample has a golden answer; `dataset.answer_key` names its key", "samples": None},
        ),
        ([question(1), question(2)], CONFIG.replace("judges:", "x-judges:"), {"golden": None, "leaks": None}),
    ],
)
def test_too_little_is_said_and_is_no_number(
    project: Project, questions: list[dict[str, Any]], config: str, expected: dict[str, str | None]
) -> None:
    config = config.partition("check:")[0].replace(", cluster_key: source", "")
    write(project, *questions, config=config.replace("x-judges: {it", "# {it"))

    outcome = project.keval("check", "eval.yaml", "--json")
    told = {each["examination"]: each["reason"] for each in outcome.data["examined"]}

    assert outcome.code in (0, 3), outcome.stderr
    assert expected == {name: told[name] for name in expected}
    assert all(
        figure["value"] is not None or figure["reason"]
        for each in outcome.data["examined"]
        for figure in each["figures"]
    )


def test_a_config_with_problems_is_not_asked(project: Project) -> None:
    project.write("eval.yaml", CONFIG.replace("testing/words", "testing/wrds"))

    outcome = project.keval("check", "eval.yaml")

    assert 2 == outcome.code
    assert "no metric named 'testing/wrds'" in outcome.stderr
    assert not (project.root / "results").exists()


def test_an_ordinary_run_is_examined_by_what_it_has(project: Project) -> None:
    project.keval("run", "eval.yaml", "--repetitions", "2")

    outcome = project.keval("check", "latest")

    assert 0 == outcome.code
    assert "only the check of a CONFIG is narrowed" in project.keval("check", "latest", "--samples", "3").stderr
    assert "golden: only `keval check CONFIG` has answers written" in outcome.stdout
    assert "detection of factual_adherence by it >= 0.99 not examined" in " ".join(outcome.stdout.split())
    assert "\nsamples\n" in outcome.stdout


def test_a_judge_that_graded_nothing_is_not_said_to_have_graded_once(project: Project) -> None:
    write(project, question(1, answer=None), config=CONFIG.partition("check:")[0].replace(", cluster_key: source", ""))

    outcome = project.keval("check", "eval.yaml", "--only", "bias", "--json")

    elsewhere = project.keval("check", "eval.yaml", "--only", "bias", "-o", "more results").stdout
    assert "keval report 'more results/" in elsewhere
    figures = [figure for each in outcome.data["examined"] for figure in each["figures"]]
    assert ["it graded no answer"] == [figure["reason"] for figure in figures if figure["name"] == "repeat"]
