"""`keval review RUN --sample`: which answers are drawn and what stays of the draw."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from keval import Run
from keval_analysis.findings.draws import Draw, draws_file
from keval_analysis.labels.drawing import draw_answers
from tests.conftest import Project
from tests.reviewing import level, review

CONFIG = """
name: judged
dataset: {path: questions.jsonl}
agents: {scripted: {}}
conditions: {baseline: {}, terse: {system_prompt: "x"}}
rubrics: [{tone: {instructions: Is it polite?, levels: {1: rude, 2: cool, 3: fair, 4: kind, 5: warm}}}]
judges: {digit: {type: double/digit}}
"""
QUESTIONS = 30


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder with a run of 30 questions in two arms; the second one differs on some."""
    project = Project(tmp_path_factory.mktemp("drawn"))
    rng, answers, samples = random.Random(7), [], []
    for place in range(QUESTIONS):
        samples.append({"id": f"q{place}", "question": f"Well, {place}?"})
        for condition in ("baseline", "terse"):
            given = min(max(place % 5 + 1 + rng.choice([-1, 0, 0, 1, 2]) * (condition == "terse"), 1), 5)
            answers.append({"id": f"q{place}", "condition": condition, "response": f"{given} of five"})
    config = CONFIG.replace("scripted: {}", "scripted: {type: recorded, path: answers.jsonl}")
    project.write(eval_yaml=config, questions_jsonl=lines(samples), answers_jsonl=lines(answers))
    assert 0 == project.run("eval.yaml", "-q").code
    return project.root


@pytest.fixture
def run(made: Path, project: Project) -> Run:
    shutil.copytree(made, project.root, dirs_exist_ok=True)
    return Run(project.run_directory())


def lines(records: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def drawn(run: Run, count: int, seed: int) -> Draw:
    return draw_answers(run, run.manifest.scorers[0], count, seed, "2026-11-26T09:00:00Z")


def test_a_draw_takes_whole_questions_over_all_levels_and_is_kept(run: Run, project: Project) -> None:
    told = project.keval("review", "latest", "--sample", "21", "--seed", "3")
    again = project.keval("review", "latest", "--sample", "20", "--seed", "3", "--json").data
    first, second = draws_file(run.path).read()

    assert 0 == told.code
    assert "draw 1: 20 answers to 10 questions (of 21 asked for, as each question is drawn in all 2 arms), seed 3" in (
        told.stdout
    )
    assert "10 of 30 questions are drawn now" in told.stdout
    assert not re.search(r"q\d+/1|scripted", told.stdout)  # whose answers they are
    assert again["draw"]["id"] == "2"
    assert [30, 30] == [first.questions, second.questions]
    assert [10, 20] == [first.drawn, second.drawn]
    assert not {each.sample for each in first.answers} & {each.sample for each in second.answers}
    assert dict.fromkeys((each.sample for each in first.answers), 2) == Counter(e.sample for e in first.answers)
    # Each level of the baseline has six questions of 30, and so two of the ten that are drawn.
    base = [each.trial for each in first.answers if each.condition == "baseline"]
    assert {1.0: 2, 2.0: 2, 3.0: 2, 4.0: 2, 5.0: 2} == Counter(run.scores_of(trial)[0].score.value for trial in base)
    assert {"1": 6, "2": 6, "3": 6, "4": 6, "5": 6} == first.frame[0].levels


@pytest.mark.slow
def test_every_question_is_as_likely_as_any_other_also_over_two_draws(run: Run) -> None:
    counts: Counter[str] = Counter()
    for seed in range(300):
        draws_file(run.path).path.unlink(missing_ok=True)
        for count in (14, 10):
            draw = drawn(run, count, seed)
            draws_file(run.path).append([draw])
            counts.update({each.sample for each in draw.answers})

    assert QUESTIONS == len(counts)
    assert 300 * 12 == counts.total()
    # 120 are expected of each, with a standard deviation of at most 8.5.
    assert 120 - 34 < min(counts.values()) <= max(counts.values()) < 120 + 34


def test_a_skipped_answer_is_no_review_and_stays_visible_by_arm(run: Run, project: Project) -> None:
    draw = drawn(run, 6, 1)
    draws_file(run.path).append([draw])
    base = [each.trial for each in draw.answers if each.condition == "baseline"]
    said = [review(run, base[0], skip=True, chosen="draw"), review(run, base[1], skip=True, chosen="draw")]
    run.reviews_file.append([*said, level(run, base[1], 3, blind=True, chosen="draw"), review(run, base[2], skip=True)])
    run.reviews_file.append([review(run, base[2], skip=None)])
    found = project.keval("report", "latest", "--json").data["reviews"]

    assert 1 == found["answers"] == found["reviews"]
    assert [("baseline", 3, 1, 1), ("terse", 3, 0, 0)] == [
        (arm["condition"], arm["drawn"], arm["reviewed"], arm["skipped"]) for arm in found["drawn"]
    ]
    told = project.keval("report", "latest", "--explain").stdout
    assert "people reviewed: scripted baseline 1 of 3, and skipped 1; scripted terse 0 of 3." in " ".join(told.split())


def test_what_cannot_be_drawn_is_refused_with_the_reason(run: Run, project: Project) -> None:
    def refused(*arguments: str) -> str:
        done = project.keval("review", *arguments)
        assert 2 == done.code
        return " ".join(done.stderr.split())

    assert "give --sample N for answers of a run, or --questions" in refused("latest")
    assert "draw 2 answers or more" in refused("latest", "--sample", "1")
    assert "there is no metric 'tune'; did you mean 'tone'?" in refused("latest", "--sample", "4", "--metric", "tune")
    whole = project.keval("review", "latest", "--sample", "1000")
    assert "draw 1: 60 answers to 30 questions (of 1000 asked for: no question is left)" in whole.stdout
    assert "all 30 questions of" in refused("latest", "--sample", "4")
    draws_file(run.path).path.write_text('{"id": 1}\n', "utf-8")
    assert "draws.jsonl:1: this line is damaged" in refused("latest", "--sample", "4")
    run.scores_file.path.unlink()
    assert "has no score of tone by digit" in refused("latest", "--sample", "4")
    project.write(bare_yaml="dataset: {path: questions.jsonl}\nagents: {scripted: {}}\nmetrics: [double/characters]\n")
    assert 0 == project.run("bare.yaml", "-q").code
    assert "has no judge that gives levels" in refused("latest", "--sample", "4")


def test_a_question_that_an_arm_did_not_answer_is_drawn_with_the_answers_that_there_are(run: Run) -> None:
    trials = run.trials_file.read_text("utf-8").splitlines(keepends=True)
    run.trials_file.write_text("".join(line for line in trials if "scripted/terse/q3/1" not in line), "utf-8")

    draw = drawn(Run(run.path), 60, 1)

    assert 59 == len(draw.answers)
    assert [30, 29] == [arm.answers for arm in draw.frame]
    assert ["baseline"] == [each.condition for each in draw.answers if each.sample == "q3"]


def test_a_draw_is_for_a_rubric_whose_levels_people_give(run: Run, project: Project) -> None:
    config = (project.root / "eval.yaml").read_text("utf-8")
    project.write(eval_yaml=config.replace("judges: {", "judges: {longer: {type: double/longer}, "))
    assert 0 == project.run("eval.yaml", "-q").code

    outcome = project.keval("review", "latest", "--sample", "4", "--metric", "preference")

    told = "people give levels, and 'preference' is scored without: draw by one of tone"
    assert (2, True) == (outcome.code, told in outcome.stderr)


def test_a_draw_from_other_questions_does_not_count(run: Run) -> None:
    draws_file(run.path).append([drawn(run, 6, 1)])
    counted = len(run.labels().draws)
    trials = run.trials_file.read_text("utf-8").splitlines(keepends=True)
    run.trials_file.write_text("".join(line for line in trials if '"sample":"q3"' not in line), "utf-8")

    assert (1, []) == (counted, Run(run.path).labels().draws)
