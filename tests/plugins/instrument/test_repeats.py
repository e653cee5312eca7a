"""One arm against itself: false verdicts, flips, and what the evaluation can see."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import attrs
import pytest

from keval import Run
from keval.config.load import load
from keval.plan.build import make_plan
from keval_instrument.check_folder import Material
from keval_instrument.findings import Examined, Figure
from keval_instrument.repeats import examine
from tests.conftest import Project
from tests.instruments import run_of_answers

SAMPLES = {f"q{number}": "1" for number in range(20)}


def scored(
    project: Project, score: Callable[[int, str, int], float], *, name: str = "rated", repetitions: int = 4
) -> Run:
    """A run of answers that are their own scores, given by the place of the sample, the condition and repetition."""
    answers = [
        (sample, condition, f"{score(place, condition, repetition):.3f}")
        for place, sample in enumerate(SAMPLES)
        for condition in ("baseline", "with_docs")
        for repetition in range(repetitions)
    ]
    return run_of_answers(project, name, answers, "metrics: [number/rating]", golden=SAMPLES, repetitions=repetitions)


def figure(found: Examined, name: str, of: str = "number/rating") -> Figure:
    (figure,) = (each for each in found.figures if each.name == name and of in each.of.values())
    return figure


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_an_arm_is_hardly_ever_better_than_itself(project: Project, seed: int) -> None:
    rng = Random(seed)
    found = examine(Material(asked=scored(project, lambda *_: min(1.0, max(0.0, rng.gauss(0.6, 0.2))))))

    for of in ("number/rating", "all"):
        false = figure(found, "false_verdicts", of)
        assert 200 == false.n
        assert (false.low or 0.0) <= 0.05
        assert (false.high or 1.0) < 0.15
    assert () == found.defects


def test_scores_that_change_while_the_run_goes_on_are_a_defect(project: Project) -> None:
    rng = Random(1)
    run = scored(project, lambda _, arm, turn: 0.3 + 0.1 * (arm == "with_docs" and turn > 1) + 0.1 * rng.random())

    (defect,) = examine(Material(asked=run)).defects
    assert defect.problem.startswith(
        "number/rating: the first half of the repetitions of 'writer' under 'with_docs' is scored other than the second"
    )


def test_flips_are_counted_by_question_and_as_often_as_two_repetitions_differ(project: Project) -> None:
    # In one arm, every other question passes in one of two repetitions.
    run = scored(project, lambda place, arm, turn: 0.9 * (arm == "baseline" or place % 2 or turn), repetitions=2)
    flips = figure(examine(Material(asked=run)), "flips")

    assert (0.25, 20) == (flips.value, flips.n)
    assert 0.1 < (flips.low or 0.0) < 0.25 < (flips.high or 1.0) < 0.4


def test_repetitions_that_are_all_alike_are_said_to_show_nothing(project: Project) -> None:
    found = examine(Material(asked=scored(project, lambda place, arm, _: place / 40 + 0.2 * (arm == "baseline"))))

    assert (0.0, 1, None) == attrs.astuple(figure(found, "false_verdicts"))[2:5]
    (defect,) = found.defects
    assert "all repetitions have the same answers, word for word: 'writer' under 'baseline', " in defect.problem


def test_questions_that_were_asked_once_give_reasons_and_no_numbers(project: Project) -> None:
    found = examine(Material(asked=scored(project, lambda place, *_: place / 20, repetitions=1)))

    for name in ("false_verdicts", "flips"):
        assert figure(found, name).value is None
        assert "two scored repetitions" in str(figure(found, name).reason)


def test_what_is_visible_is_that_of_the_planned_evaluation(project: Project) -> None:
    rng = Random(2)
    run = scored(project, lambda *_: rng.random())
    lines = "".join(f'{{"id": "p{number}", "question": "What?", "answer": "1"}}\n' for number in range(60))
    with (project.root / "rated-q.jsonl").open("a", encoding="utf-8") as file:
        file.write(lines)
    (project.root / "rated.jsonl").write_text('{"id": "q0", "response": "1"}\n' * 4, encoding="utf-8")
    config = (
        (project.root / "rated.yaml")
        .read_text(encoding="utf-8")
        .replace("recorded, path: rated.jsonl, partial: true", "scripted")
    )
    (project.root / "planned.yaml").write_text(config, encoding="utf-8")
    planned = figure(examine(Material(asked=run, plan=make_plan(load(project.root / "planned.yaml")))), "visible")
    own = figure(examine(Material(asked=run)), "visible")

    assert (
        0.4 < (planned.value or 0.0) / (own.value or 1.0) < 0.6
    )  # four times as many questions show half the difference


def test_without_a_run_there_is_a_reason() -> None:
    assert Examined("repeats", reason="it failed") == examine(Material(reasons={"asked": "it failed"}))
