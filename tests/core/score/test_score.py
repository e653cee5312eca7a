"""Scores: what fails is unscored and counted, what is neutral stays out of means, and a run can be scored again."""

from __future__ import annotations

import json
import math
import threading

import pytest

from keval import Scale
from keval.records.scores import named_band
from keval.score import scoring
from keval_doubles.metrics import Meets
from tests.conftest import Project, scale_of

CONFIG = """
dataset: {path: questions.jsonl}
agents: {scripted: {}}
conditions: {baseline: {}}
metrics: [double/length]
"""
QUESTIONS = "".join(json.dumps({"id": name, "question": name * 10}) + "\n" for name in "ab")


def test_a_scorer_that_fails_is_unscored_and_never_a_low_score(project: Project) -> None:
    config = CONFIG.replace("[double/length]", "[double/broken, double/beyond, double/length]")
    project.write(eval_yaml=config, questions_jsonl=QUESTIONS)

    outcome = project.keval("run", "eval.yaml", "--json")

    arms = {arm["metric"]: arm for arm in outcome.data["arms"]}
    assert 3 == outcome.code
    assert (None, 2, 2) == tuple(arms["double/broken"][key] for key in ("mean", "unscored", "failed"))
    assert (None, 2, 2) == tuple(arms["double/beyond"][key] for key in ("mean", "unscored", "failed"))
    assert (0.1, 0, 0) == tuple(arms["double/length"][key] for key in ("mean", "unscored", "failed"))


def test_a_metric_may_give_a_number_or_say_yes_or_no(project: Project) -> None:
    config = CONFIG.replace("[double/length]", "[plain/length, plain/whether]")
    project.write(eval_yaml=config, questions_jsonl=QUESTIONS)

    outcome = project.keval("run", "eval.yaml", "--json")

    assert {"plain/length": 10.0, "plain/whether": 0.5} == {arm["metric"]: arm["mean"] for arm in outcome.data["arms"]}
    assert {10, 1.0, 0.0} == {line["value"] for line in project.lines("scores.jsonl")}


def test_a_score_too_large_to_be_squared_is_told_where_its_scale_ends(project: Project) -> None:
    config = CONFIG.replace("[double/length]", "[{double/characters: {each: 1.0e+150}}]")
    project.write(eval_yaml=config, questions_jsonl=QUESTIONS)

    outcome = project.keval("run", "eval.yaml", "--json")

    (message,) = outcome.data["arms"][0]["failure_messages"].values()
    assert message.endswith(" is outside the scale 0 to 1e+100")


def test_a_call_that_got_no_thread_is_not_told_as_slow(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    config = CONFIG.replace("double/length", "crowd/meets")
    project.write(eval_yaml=f"{config}execution: {{timeout_seconds: 0.2}}", questions_jsonl=QUESTIONS)
    end = threading.Event()
    monkeypatch.setattr(scoring, "_THREADS", 1)
    monkeypatch.setattr(Meets, "score", lambda self, trial: end.wait())

    try:
        project.keval("run", "eval.yaml")
    finally:
        end.set()

    told = [score["failure"]["message"] for score in project.lines("scores.jsonl")]
    without = "no thread was free within 0.2 s: calls of metrics that block hold all 1"
    assert sorted(["no score within 0.2 s", without]) == sorted(told)


def test_neutral_scores_are_shown_and_left_out_of_means(project: Project) -> None:
    project.write(eval_yaml=CONFIG.replace("double/length", "double/neutral"), questions_jsonl=QUESTIONS)

    outcome = project.keval("run", "eval.yaml", "--json")

    (arm,) = outcome.data["arms"]
    assert (0, None, 2, 0) == (arm["n"], arm["mean"], arm["neutral"], arm["unscored"])


def test_neutral_scores_count_when_the_config_says_so(project: Project) -> None:
    config = CONFIG.replace("double/length", "double/neutral") + "neutral: count\n"
    project.write(eval_yaml=config, questions_jsonl=QUESTIONS)

    outcome = project.keval("run", "eval.yaml", "--json")

    (arm,) = outcome.data["arms"]
    assert (2, 0.5, 2) == (arm["n"], arm["mean"], arm["neutral"])


def test_a_run_is_scored_again_without_calling_an_agent(project: Project) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl=QUESTIONS)
    project.keval("run", "eval.yaml")
    before = (project.run_directory() / "trials.jsonl").read_bytes()
    (project.root / "questions.jsonl").unlink()

    outcome = project.keval("score", "latest", "--metric", "double/neutral", "--json")

    assert (0, before) == (outcome.code, (project.run_directory() / "trials.jsonl").read_bytes())
    assert ["double/length", "double/neutral"] == [arm["metric"] for arm in outcome.data["arms"]]
    assert 4 == len(project.lines("scores.jsonl"))


def test_scoring_again_replaces_the_scores_of_that_scorer(project: Project) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl=QUESTIONS)
    project.keval("run", "eval.yaml")
    before = project.lines("scores.jsonl")

    outcome = project.keval("score", "latest")

    assert (0, before) == (outcome.code, project.lines("scores.jsonl"))


def test_a_judge_grades_by_rubric_in_the_rubrics_scale(project: Project) -> None:
    config = CONFIG + "judges: {strict: {level: 3}, lenient: {type: strict, level: 9}}\nrubrics: [double/brevity]\n"
    project.write(eval_yaml=config, questions_jsonl=QUESTIONS)

    outcome = project.keval("run", "eval.yaml", "--json")

    graded = {arm["judge"]: arm for arm in outcome.data["arms"] if arm["judge"]}
    assert 3 == outcome.code
    assert (3.0, 0) == (graded["strict"]["mean"], graded["strict"]["unscored"])
    assert (None, 2) == (graded["lenient"]["mean"], graded["lenient"]["failed"])
    scale = scale_of(outcome, "double/brevity")
    assert (1.0, 3.0) == (scale["low"], scale["high"])


def test_facts_of_hook_plugins_are_frozen_in_the_run(project: Project) -> None:
    own = json.dumps({"id": "own", "question": "rain", "facts": {"truth": "rain"}}) + "\n"
    config = CONFIG.replace("double/length", "double/uses_fact") + "plugins: [double/facts]\n"
    project.write(eval_yaml=config, questions_jsonl=QUESTIONS + own)

    outcome = project.keval("run", "eval.yaml")

    facts = {sample["id"]: sample["facts"]["truth"] for sample in project.lines("samples.jsonl")}
    assert (0, {"a": "sun", "b": "sun", "own": "rain"}) == (outcome.code, facts)
    assert {"a": 0.0, "b": 0.0, "own": 1.0} == {line["sample"]: line["value"] for line in project.lines("scores.jsonl")}


def test_a_hook_plugin_that_fails_stops_the_run_before_its_first_trial(project: Project) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl=QUESTIONS)

    outcome = project.keval("run", "eval.yaml", "-p", "double/broken-facts")

    (project.root / "kept").mkdir()
    kept = project.keval("run", "eval.yaml", "-p", "double/broken-facts", "-o", "kept")

    hook = "the hook plugin 'double/broken-facts' of keval-doubles 1.0"
    message = f"error: {hook} failed to look up facts for sample 'a': ConnectionError: no route\n"
    assert (2, []) == (kept.code, [*(project.root / "kept").iterdir()])
    assert (2, message) == (outcome.code, outcome.stderr)
    assert not (project.root / "results").exists()


def test_a_narrowed_run_is_scored_again_as_it_was_narrowed(project: Project) -> None:
    config = CONFIG.replace("{baseline: {}}", "{1: {}, second: {}, third: {}}") + "baseline: third\n"
    project.write(eval_yaml=config, questions_jsonl=QUESTIONS)
    project.keval("run", "eval.yaml", "--condition", "1", "--condition", "second")

    outcome = project.keval("score", "latest", "--json")

    assert (0, ["1", "second"]) == (outcome.code, [arm["condition"] for arm in outcome.data["arms"]])


JUDGED = "rubrics: [double/brevity]\njudges: "


def test_a_judge_that_cannot_begin_stops_the_run_before_its_first_trial(project: Project) -> None:
    project.write(eval_yaml=CONFIG + JUDGED + "{strict: {refuses: no such model}}\n", questions_jsonl=QUESTIONS)

    outcome = project.keval("run", "eval.yaml")

    assert (2, "error: eval.yaml:6:10: no such model\n") == (outcome.code, outcome.stderr)
    assert not (project.root / "results").exists()


def test_scores_stay_when_scoring_again_fails(project: Project) -> None:
    project.write(eval_yaml=CONFIG + JUDGED + "{strict: {refuses: '${JUDGE_IS_OUT:-}'}}\n", questions_jsonl=QUESTIONS)
    project.keval("run", "eval.yaml")
    before = project.lines("scores.jsonl")

    outcome = project.keval("score", "latest", env={"JUDGE_IS_OUT": "gone"})

    assert (2, before) == (outcome.code, project.lines("scores.jsonl"))


def test_odd_returns_of_a_judge_are_unscored(project: Project) -> None:
    judges = "{none: {type: strict, odd: nothing}, text: {type: strict, odd: text}}\n"
    project.write(eval_yaml=CONFIG + JUDGED + judges, questions_jsonl=QUESTIONS)

    outcome = project.keval("run", "eval.yaml", "--json")

    graded = {arm["judge"]: (arm["unscored"], arm["failed"]) for arm in outcome.data["arms"] if arm["judge"]}
    assert (3, {"none": (2, 2), "text": (2, 2)}) == (outcome.code, graded)


def test_a_busy_judge_is_asked_again(project: Project) -> None:
    config = CONFIG + JUDGED + "{strict: {busy: 2}}\nexecution: {retry: {initial_backoff_seconds: 0}}\n"
    project.write(eval_yaml=config, questions_jsonl=QUESTIONS)

    outcome = project.keval("run", "eval.yaml", "--json")

    assert (0, 2.0) == (outcome.code, outcome.data["arms"][1]["mean"])


def test_a_rubric_is_graded_once_and_by_its_own_levels(project: Project) -> None:
    config = CONFIG + "judges: {strict: {}}\nrubrics:\n  - double\n"
    config += "  - double/brevity: {instructions: 'Is it short?', levels: {1: long, 2: short, 9: gone}}\n"
    project.write(eval_yaml=config, questions_jsonl=QUESTIONS)

    outcome = project.keval("run", "eval.yaml", "--json")

    assert 0 == outcome.code
    scale = scale_of(outcome, "double/brevity")
    assert (1.0, 9.0) == (scale["low"], scale["high"])
    assert 2 == len([line for line in project.lines("scores.jsonl") if line["judge"]])


def test_hook_plugins_are_told_what_happens(project: Project) -> None:
    project.write(
        eval_yaml=CONFIG + JUDGED + "{one: {type: strict, level: 1}, two: {type: strict}}\n", questions_jsonl=QUESTIONS
    )

    project.keval("run", "eval.yaml", "-p", "double/diary", "-j", "1")

    told = (project.root / "diary.txt").read_text(encoding="utf-8").splitlines()
    scores = "[('double/length', None, 0.1), ('double/brevity', 'one', 1.0), ('double/brevity', 'two', 2.0)]"
    assert ["started eval", "ended 3"] == [told.pop(0), told.pop()]
    for trial in ("scripted/baseline/a/1", "scripted/baseline/b/1"):
        assert [f"finished {trial}", f"scored {trial} {scores}"] == [line for line in told if f" {trial}" in line]
    assert 4 == len(told)


def test_earlier_hook_plugins_win_over_later_ones(project: Project) -> None:
    plugins = "plugins: [double/facts: {truth: first}, double/other-facts: {truth: second}]\n"
    project.write(eval_yaml=CONFIG + plugins, questions_jsonl=QUESTIONS)

    project.keval("run", "eval.yaml")

    assert {"first"} == {sample["facts"]["truth"] for sample in project.lines("samples.jsonl")}


def test_the_facts_that_hooks_add_are_in_no_prompt(project: Project) -> None:
    config = CONFIG.replace("baseline: {}", "baseline: {system_prompt: 'You know {{ facts | tojson }}. '}")
    project.write(eval_yaml=config + "plugins: [double/facts]\n", questions_jsonl=QUESTIONS)

    project.keval("run", "eval.yaml")

    assert {"You know {}.aaaaaaaaaa", "You know {}.bbbbbbbbbb"} == {t["output"] for t in project.lines("trials.jsonl")}


@pytest.mark.parametrize(("low", "high"), [(-math.inf, 1.0), (0.0, 0.0), (1.0, 0.0), (0.0, math.nan)])
def test_a_scale_begins_at_a_number_and_rises(low: float, high: float) -> None:
    with pytest.raises(ValueError, match="a scale"):
        Scale(low, high)


def test_a_band_begins_at_its_value() -> None:
    bands = Scale(bands={"poor": 0.1, "good": 0.7}).bands

    assert [None, "poor", "poor", "good"] == [named_band(bands, value) for value in (0.05, 0.1, 0.69, 0.7)]
    # A mean of tenths comes out a hair below.
    assert "good" == named_band(bands, (0.7 + 0.7 + 0.7) / 3 - 1e-16)
    with pytest.raises(ValueError, match="lowest first"):
        Scale(bands={"good": 0.7, "poor": 0.1})
