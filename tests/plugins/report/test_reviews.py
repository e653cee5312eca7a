"""Reviews in the report: on the terminal, in the page, as Markdown and as JSON; and in what is made of a run."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from keval import Run
from keval_report.report import Report
from keval_viewer.report_page import FRAGMENTS
from tests.conftest import Project
from tests.reviewing import level, review

CONFIG = """
name: judged
dataset: {path: questions.jsonl}
agents: {scripted: {}}
conditions: {baseline: {}, terse: {system_prompt: "Be terse. "}}
rubrics: [{tone: {instructions: Is it polite?, levels: {1: rude, 2: cool, 3: fair, 4: kind, 5: warm}}}]
judges: {reader: {}}
metrics: [double/characters]
"""
JUDGED = [1, 2, 3, 4, 5, 5, 4, 3, 2, 1, 4, 4]
PEOPLE = [1, 2, 3, 3, 4, 5, 4, 2, 2, 1, 3, 5]
"""Levels by question: the judge is higher by 1 four times, and lower once."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder with a run that has the reviews of two people, one of which is hostile."""
    project = Project(tmp_path_factory.mktemp("judged"))
    samples = [{"id": f"q{place}", "question": f"Well, {place}?", "level": of} for place, of in enumerate(JUDGED)]
    project.write(eval_yaml=CONFIG, questions_jsonl="".join(json.dumps(sample) + "\n" for sample in samples))
    assert 0 == project.run("eval.yaml", "-q").code
    run = Run(project.run_directory())
    said = []
    for place, of in enumerate(PEOPLE):
        trial = f"scripted/terse/q{place}/1"
        said += [level(run, trial, of, blind=True, chosen="random")]
    for place in (0, 4):
        said += [level(run, f"scripted/terse/q{place}/1", PEOPLE[place], "<b>Ben|", chosen="random")]
    said += [review(run, "scripted/baseline/q0/1", "<b>Ben|", note="<img src=x> no", chosen="all")]
    run.reviews_file.append(said)
    return project.root


@pytest.fixture
def run(made: Path, project: Project) -> Run:
    shutil.copytree(made, project.root, dirs_exist_ok=True)
    return Run(project.run_directory())


def found(project: Project) -> dict[str, Any]:
    data: dict[str, Any] = project.keval("report", "latest", "--json").data["reviews"]
    return data


def test_the_summary_says_how_far_the_judge_agrees_with_people(run: Run, project: Project) -> None:
    reviews = found(project)

    (judge,) = reviews["judges"]
    assert ("tone", "reader", 12, 12, 14) == tuple(judge[key] for key in ("metric", "judge", "n", "questions", "pairs"))
    matrix = [[2 + 1, 0, 0, 0, 0], [0, 2, 1, 0, 0], [0, 0, 1, 2, 0], [0, 0, 0, 1, 2], [0, 0, 0, 1, 1]]
    assert ([1, 2, 3, 4, 5], matrix) == (judge["levels"], judge["confusion"])
    assert pytest.approx((8 / 14, 1.0, 3 / 12)) == (judge["same"], judge["near"], judge["bias"])
    assert judge["ci_low"] < judge["kappa"] < judge["ci_high"] < 1
    assert (["reader", "<b>Ben|"], 2) == (judge["people"][1]["raters"], judge["people"][1]["n"])
    (people,) = reviews["people"]
    assert ("tone", 2, 1.0) == (people["metric"], people["n"], people["alpha"])
    arms = [(arm["condition"], arm["answers"]) for arm in reviews["arms"]]
    assert [("baseline", 1), ("terse", 12)] == arms
    assert pytest.approx(sum(PEOPLE) / 12) == reviews["arms"][1]["levels"][0]["mean"]
    counts = {each["reviewer"]: (each["answers"], each["blind"]) for each in reviews["reviewers"]}
    assert {"Ann": (12, 12), "<b>Ben|": (3, 0)} == counts
    assert {"random": 14, "all": 1} == reviews["chosen"]
    assert {"all": 1} == reviews["uncounted"]
    assert [("terse", 12, 0.25)] == [(arm["condition"], arm["n"], arm["bias"]) for arm in judge["arms"]]


def test_the_report_tells_it_on_the_terminal(run: Run, project: Project) -> None:
    shown = project.keval("report", "latest", "--explain").stdout

    line = next(line for line in shown.splitlines() if line.startswith("  tone by reader"))
    assert re.search(r"tone by reader +0\.8\d \[0\.\d\d, 0\.9\d\] +57 % +\+0\.25 \[.*\] +12$", line)
    told = " ".join(shown.split())
    assert "13 answers reviewed by 2 people (Ann 12, <b>Ben| 3); 1 note; 12 of 15 blind." in told
    assert (
        "1 of 15 reviews is of all answers, of which some are not reviewed, so the figures on judges leave them out."
        in told
    )
    assert "tone by reader, judge - people (blind): scripted terse +0.25 [" in told
    uncorrected = "tone by reader, scripted terse against scripted baseline: no effect is corrected, because 12 and 0"
    assert f"{uncorrected} questions are labelled, and each arm needs 10" in told


def test_a_page_and_markdown_show_it_with_the_words_of_people_as_text(run: Run, project: Project) -> None:
    project.keval("report", "latest", "--html", "page.html")
    page = (project.root / "page.html").read_text("utf-8")
    part = str(FRAGMENTS["reviews"](Report(run, run.summary())))
    markdown = project.keval("report", "latest", "--markdown").stdout

    assert part in page
    assert '<a href="#reviews">Reviews by people</a>' in page
    assert "&lt;img src=x&gt; no" in part
    assert "<img" not in part
    assert "<b>" not in part + markdown
    cells = re.findall(r'<td class="num s(\d)( same)?">(\d*)</td>', part)
    assert [("3", " same", "3"), ("0", "", "")] == cells[:2]
    row = next(line for line in markdown.splitlines() if line.startswith("| tone | reader"))
    ends, shares = r"\[0\.\d\d, 0\.9\d\]", r"57 % \| 100 %"
    assert re.match(rf"\| tone \| reader \| 12 \| 0\.8\d \| {ends} \| 0\.\d\d \| {shares} \| \+0\.25", row)


def test_a_part_of_the_page_has_what_was_said_since_the_summary_was_made(run: Run) -> None:
    before = Report(run, run.summary())
    run.reviews_file.append([review(run, "scripted/baseline/q1/1", "Zoë", note="good")])

    assert "Zoë 1" in str(FRAGMENTS["reviews"](before))


def test_without_reviews_nothing_is_said_of_them(run: Run, project: Project) -> None:
    run.reviews_file.path.unlink()

    assert found(project) is None
    assert "review" not in project.keval("report", "latest").stdout.lower()
    assert "" == str(FRAGMENTS["reviews"](Report(run, run.summary()))).strip()


def test_a_run_that_is_scored_again_keeps_its_reviews_and_is_compared_by_its_new_judge(
    run: Run, project: Project
) -> None:
    assert 0 == project.keval("score", "latest", "--judge", "strict", "-q").code

    judges = json.loads((run.path / "summary.json").read_text("utf-8"))["reviews"]["judges"]
    assert pytest.approx({"strict": 0.0}) == {
        judge["judge"]: judge["kappa"] for judge in judges if judge["judge"] == "strict"
    }


def test_reviews_make_no_difference_between_runs(run: Run, project: Project) -> None:
    other = shutil.copytree(run.path, project.root / "results" / "judged" / "other")
    (other / "reviews.jsonl").unlink()

    assert 0 == project.keval("compare", "--exact", str(run.path), str(other)).code
