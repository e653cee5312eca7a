"""Effects that people's labels correct: a judge that favours one arm, and labels that cannot correct it."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

from keval import Run
from keval_analysis.findings.draws import draws_file
from keval_analysis.findings.reviews import Review
from keval_analysis.labels.drawing import draw_answers
from keval_report.report import Report
from keval_viewer.report_page import FRAGMENTS
from keval_viewer.runs import Runs
from tests.conftest import Project
from tests.reviewing import level

CONFIG = """
name: judged
dataset: {path: questions.jsonl}
agents: {taped: {type: recorded, path: answers.jsonl}}
conditions: {baseline: {}, docs: {system_prompt: "x"}}
rubrics: [{tone: {instructions: Is it polite?, levels: LEVELS}}]
judges: {digit: {type: double/digit}}
"""
FIVE = "{1: rude, 2: cool, 3: fair, 4: kind, 5: warm}"
QUESTIONS = 40
LABELLED = 15


def make(project: Project, levels: str, kinder: Mapping[str, float], truth: Mapping[str, list[int]]) -> Run:
    """Run recorded answers that hold the level that the judge gives: what is true, and more in an arm it favours."""
    rng, answers = random.Random(31), []
    allowed = [int(character) for character in levels if character.isdecimal()]
    for condition, of in truth.items():
        for place, right in enumerate(of):
            given = right + (rng.random() < kinder[condition])
            answers.append({"id": f"q{place}", "condition": condition, "response": f"{min(given, max(allowed))} of it"})
    samples = [{"id": f"q{place}", "question": f"Well, {place}?"} for place in range(QUESTIONS)]
    project.write(
        eval_yaml=CONFIG.replace("LEVELS", levels), questions_jsonl=lines(samples), answers_jsonl=lines(answers)
    )
    assert 0 == project.run("eval.yaml", "-q").code
    return Run(project.run_directory())


def lines(records: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def true_levels() -> dict[str, list[int]]:
    """What people find: no difference between the arms on the whole, and different answers."""
    rng = random.Random(5)
    base = [rng.choice([1, 2, 2, 3, 3, 4]) for _ in range(QUESTIONS)]
    moves = [1, -1] * (QUESTIONS // 4) + [0] * (QUESTIONS // 2)
    rng.shuffle(moves)
    return {"baseline": base, "docs": [min(max(of + move, 1), 5) for of, move in zip(base, moves, strict=True)]}


def labels(run: Run, truth: Mapping[str, list[int]], questions: range, **more: Any) -> list[Review]:
    """The levels that a person finds by the first questions of a random order, blind, as the review page keeps them."""
    order = random.Random(1).sample(range(QUESTIONS), QUESTIONS)
    given = {"blind": True, "chosen": "random", **more}
    return [
        level(run, f"taped/{condition}/q{order[place]}/1", truth[condition][order[place]], **given)
        for place in questions
        for condition in truth
    ]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder with a run whose judge is a level kinder to three of five answers with docs."""
    project = Project(tmp_path_factory.mktemp("favoured"))
    make(project, FIVE, {"baseline": 0.0, "docs": 0.6}, true_levels())
    return project.root


@pytest.fixture
def run(made: Path, project: Project) -> Run:
    shutil.copytree(made, project.root, dirs_exist_ok=True)
    return Run(project.run_directory())


def corrected(project: Project) -> dict[str, Any]:
    (found,) = project.keval("report", "latest", "--json").data["reviews"]["corrected"]
    return dict(found)


@pytest.mark.slow
def test_labels_correct_the_effect_of_a_judge_that_favours_an_arm(run: Run, project: Project) -> None:
    truth = true_levels()
    true = sum(now - before for now, before in zip(truth["docs"], truth["baseline"], strict=True)) / QUESTIONS
    run.reviews_file.append(labels(run, truth, range(LABELLED)))

    summary = project.keval("report", "latest", "--json").data
    effect, found = summary["effects"][0], corrected(project)
    short = project.keval("report", "latest").stdout
    told = " ".join(project.keval("report", "latest", "--explain").stdout.split())
    markdown = project.keval("report", "latest", "--markdown").stdout
    page = str(FRAGMENTS["effects"](Report(run, run.summary())))

    assert ("better", True) == (effect["verdict"], effect["ci_low"] > true)
    assert found["ci_low"] < true < found["ci_high"]
    assert found["ci_low"] < 0 < found["ci_high"]
    assert (30, 15, 40, None) == tuple(found[key] for key in ("labels", "pairs", "n", "reason"))
    assert 0.2 < found["bias_low"] < found["bias_difference"] < found["bias_high"] < 0.9
    baseline, docs = summary["reviews"]["judges"][0]["arms"]
    assert (0.0, 15, 15) == (baseline["bias"], baseline["n"], docs["n"])
    assert pytest.approx(found["bias_difference"]) == docs["bias"]
    assert None is docs["sensitivity"]
    figures = f"{found['difference']:+.2f} [{found['ci_low']:+.2f}, {found['ci_high']:+.2f}]"
    caution = "tone (1-5): the judge is kinder to one arm; by people's labels the verdict could be another"
    assert caution in " ".join(short.split())
    for each in (short, told, page):
        assert f"corrected by 30 labels {figures}" in each
    assert f"; corrected by 30 labels {figures}" in markdown.replace("\\", "")
    assert f"taped docs against taped baseline: corrected by 30 labels, 15 pairs {figures}; judge - people" in told


def test_a_bias_that_all_labels_have_alike_may_be_larger_or_smaller(run: Run, project: Project) -> None:
    given = {trial.id: int(trial.output[0]) for trial in run.trials() if trial.output[0] > "1"}
    lower = [level(run, trial, judge - 1, blind=True, chosen="random") for trial, judge in given.items()]
    run.reviews_file.append(lower[:30])

    for arm in project.keval("report", "latest", "--json").data["reviews"]["judges"][0]["arms"]:
        assert arm["ci_low"] < arm["bias"] == 1.0 < arm["ci_high"]


def test_later_labels_are_in_the_page_of_a_run_that_was_summarised_before(run: Run) -> None:
    runs = Runs(run.path.parents[1])
    before = runs.report(run)
    run.reviews_file.append(labels(run, true_levels(), range(LABELLED)))
    after = runs.report(run)

    assert None is before.summary.reviews
    assert "corrected by 30 labels" in str(FRAGMENTS["effects"](after))
    assert "corrected by 30 labels" in str(FRAGMENTS["reviews"](before))
    assert before.summary == attrs.evolve(after.summary, reviews=None)


@pytest.mark.parametrize(
    ("count", "more", "told"),
    [
        (9, {}, "9 and 9 questions are labelled, and each arm needs 10"),
        (15, {"chosen": "all"}, "0 and 0 questions are labelled, and each arm needs 10; not counted: 30 not drawn at"),
        (15, {"blind": False}, "each arm needs 10; not counted: 30 not blind"),
        (QUESTIONS, {"chosen": "all"}, None),
    ],
)
def test_labels_that_do_not_count_are_told_in_place_of_a_number(
    run: Run, project: Project, count: int, more: dict[str, Any], told: str | None
) -> None:
    run.reviews_file.append(labels(run, true_levels(), range(count), **more))

    found = corrected(project)

    assert (told is None) == (found["difference"] is not None)
    assert told is None if found["reason"] is None else str(told) in found["reason"]
    explained = " ".join(project.keval("report", "latest", "--explain").stdout.split())
    assert (f"no effect is corrected, because {found['reason']}" in explained) == (told is not None)


def test_answers_that_were_drawn_count_until_the_judge_is_changed(run: Run, project: Project) -> None:
    truth = true_levels()
    draw = draw_answers(run, run.manifest.scorers[0], 24, 3, "2026-11-26T09:00:00Z")
    draws_file(run.path).append([draw])
    said = [
        level(run, each.trial, truth[each.condition][int(each.sample[1:])], blind=True, chosen="draw")
        for each in draw.answers
    ]
    run.reviews_file.append(said)
    counted = corrected(project)
    draws_file(run.path).path.unlink()
    draws_file(run.path).append([attrs.evolve(draw, digest="another")])
    changed = corrected(project)

    assert (24, 12, None) == (counted["labels"], counted["pairs"], counted["reason"])
    assert (0, None) == (changed["labels"], changed["difference"])
    assert "not counted: 24 drawn before the judge was changed" in changed["reason"]


def test_several_people_are_averaged_and_two_levels_have_sensitivity_and_specificity(project: Project) -> None:
    truth = {"baseline": [1, 2] * (QUESTIONS // 2), "docs": [1, 1, 2, 2] * (QUESTIONS // 4)}
    run = make(project, "{1: fails, 2: passes}", {"baseline": 0.0, "docs": 1.0}, truth)
    said = labels(run, truth, range(20))
    others = [attrs.evolve(each, reviewer="Ben", level=3 - (each.level or 0)) for each in said[:2]]
    run.reviews_file.append([*said, *others])

    baseline, docs = project.keval("report", "latest", "--json").data["reviews"]["judges"][0]["arms"]
    shown = " ".join(project.keval("report", "latest", "--explain").stdout.split())

    decided = [each.level for each in said[2:] if "/docs/" in each.trial]
    assert (1.0, decided.count(2), 0.0, decided.count(1)) == tuple(
        docs[rate][key] for rate in ("sensitivity", "specificity") for key in ("share", "n")
    )
    assert 0.5 < docs["sensitivity"]["ci_low"] < docs["sensitivity"]["ci_high"] == pytest.approx(1)
    assert (1.0, 1.0) == (baseline["sensitivity"]["share"], baseline["specificity"]["share"])
    assert pytest.approx((decided.count(1) + 0.5) / 20) == docs["bias"]
    assert ", specificity 0.00 [0.00, " in shown


def test_an_answer_that_nobody_judges_differently_has_no_correction(project: Project) -> None:
    alike = {"baseline": [3] * QUESTIONS, "docs": [3] * QUESTIONS}
    run = make(project, FIVE, {"baseline": 0.0, "docs": 0.5}, alike)
    run.reviews_file.append(labels(run, alike, range(QUESTIONS)))

    assert "people gave one level throughout" == corrected(project)["reason"]


def test_a_judge_that_always_answers_alike_is_not_used(project: Project) -> None:
    truth = true_levels()
    run = make(project, FIVE, {"baseline": 0.0, "docs": 0.0}, {name: [5] * QUESTIONS for name in truth})
    run.reviews_file.append(labels(run, truth, range(LABELLED)))

    found = corrected(project)

    order = random.Random(1).sample(range(QUESTIONS), QUESTIONS)[:LABELLED]
    by_people = [sum(truth[name][place] for place in order) / LABELLED for name in ("docs", "baseline")]
    assert 0.0 == found["tuning"]
    assert pytest.approx(by_people[0] - by_people[1]) == found["difference"]
    assert "the judge's levels do not rise with people's" in " ".join(
        project.keval("report", "latest", "--explain").stdout.split()
    )
