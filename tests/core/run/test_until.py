"""Runs that may end early: looked at while they run, by intervals that hold at every look."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

import pytest

from keval import Run, Summary, open_run
from keval.records.trial import TrialKey
from keval_analysis.follow import Follower
from keval_remote.crew.worker import open_worker
from tests.conftest import Outcome, Project

CONFIG = """
name: docs
dataset: {{path: questions.jsonl{dataset}}}
agents: {{scripted: {{}}}}
conditions:
  baseline: {{system_prompt: "{{{{ metadata.before }}}}"}}
  with_docs: {{system_prompt: "{{{{ metadata.after }}}}"}}
  with_more: {{system_prompt: "{{{{ metadata.after }}}}!"}}
primary: [double/length]
metrics: [double/length]
execution: {{max_concurrent: 4, num_repetitions: 2, until: {until}}}
"""
QUESTIONS = 40
DECIDED = "{effect: with_docs/double/length, decided: true}"


def looked_at(project: Project, until: str = DECIDED, shift: float = 20.0, *, dataset: str = "", **more: Any) -> None:
    """Write an evaluation in which docs make answers longer by about `shift` characters; `more` is of every sample."""
    rng = random.Random(5)
    lines = []
    for number in range(QUESTIONS):
        before = rng.randint(20, 50)
        after = max(1, round(before + rng.gauss(shift, 12)))
        metadata = {"says": "", "before": "x" * before, "after": "x" * after, "file": f"file {number // 2}", **more}
        lines.append(json.dumps({"id": f"q{number}", "question": f"Question {number}?", "metadata": metadata}) + "\n")
    project.write(eval_yaml=CONFIG.format(until=until, dataset=dataset), questions_jsonl="".join(lines))


def ran(project: Project, *args: str) -> tuple[Outcome, Run]:
    done = project.run("eval.yaml", *args)
    return done, open_run(max(project.root.glob("results/docs/*"), key=lambda path: path.stat().st_mtime_ns))


def the_effect(run: Run) -> Any:
    summary = run.written_summary()
    assert summary is not None
    return with_docs(summary)


def with_docs(summary: Summary) -> Any:
    return next(effect for effect in summary.effects if effect.condition == "with_docs")


def test_a_run_ends_when_its_effect_is_decided(project: Project) -> None:
    looked_at(project)

    done, run = ran(project)

    assert 0 == done.code
    looking, summary, effect = run.manifest.looking, run.written_summary(), the_effect(run)
    assert looking is not None
    assert summary is not None
    asked, trials = len(looking.asked), [*run.trials()]
    assert 10 <= asked < QUESTIONS / 2
    told = f"ended after {asked} of {QUESTIONS} questions: with_docs/double/length is decided"
    assert (told, told) == (run.manifest.stopped, summary.stopped)
    assert f"{told}." in done.stdout
    assert "intervals hold at every look" in done.stdout
    # What was in flight is finished, and in no figure; it is no missing trial either.
    assert 6 * asked <= len(trials) == summary.planned <= 6 * asked + 8
    assert (False, asked, "better") == (summary.unfinished, effect.n, effect.verdict)
    assert (asked, 2 * asked) == (summary.arms[0].n, summary.arms[0].scored)
    # All trials of a question came before those of the next.
    order = list(dict.fromkeys(trial.sample.id for trial in run.trials_as_finished()))
    assert {*looking.asked} == {*order[:asked]}
    # It is decided among the two effects of its family, and was not long before.
    assert 0 < effect.ci_low
    assert 0.005 < effect.p_adjusted <= 0.05


def test_preferences_are_counted_on_the_questions_that_count(project: Project) -> None:
    looked_at(project)
    config = (project.root / "eval.yaml").read_text(encoding="utf-8")
    project.write(eval_yaml=f"{config}judges: {{longer: {{type: double/longer}}}}\n")

    _, run = ran(project)

    summary, looking = run.written_summary(), run.manifest.looking
    assert summary is not None
    assert looking is not None
    for rate in summary.win_rates:
        assert (rate.n, 2 * rate.n) == (len(looking.asked), rate.wins + rate.ties + rate.losses)
    assert 2 == len(summary.win_rates)
    assert any(trial.sample.id not in looking.asked for trial in run.trials())


def test_a_comparison_takes_no_trial_of_an_ended_run_for_a_lost_one(project: Project) -> None:
    looked_at(project)
    (_, first), (_, second) = ran(project), ran(project)
    looking = first.manifest.looking
    assert looking is not None
    assert any(each.sample.id not in looking.asked for each in first.trials())

    compared = project.keval("compare", str(first.path), str(second.path))

    assert 0 == compared.code
    assert "trials answered" not in compared.stdout


def test_a_run_without_an_effect_goes_to_its_end(project: Project) -> None:
    looked_at(project, shift=0.0)

    done, run = ran(project)

    assert 0 == done.code
    looking, effect = run.manifest.looking, the_effect(run)
    assert looking is not None
    assert (None, None, ()) == (run.manifest.stopped, looking.ended, looking.asked)
    assert 6 * QUESTIONS == len([*run.trials()]) == run.manifest.trials
    assert (QUESTIONS, "unclear") == (effect.n, effect.verdict)
    project.write(eval_yaml=CONFIG.format(until="null", dataset=""))
    once = the_effect(ran(project)[1])
    assert once.difference == effect.difference
    assert 1.5 < (effect.ci_high - effect.ci_low) / (once.ci_high - once.ci_low) < 1.7
    assert "intervals hold at every look" in done.stdout


def test_a_run_ends_when_its_interval_is_narrow_enough(project: Project) -> None:
    looked_at(project, "{effect: with_docs/double/length, width: 0.2}", shift=0.0)

    _, run = ran(project)

    effect = the_effect(run)
    assert "questions: the interval of with_docs/double/length is at most 0.2 wide" in str(run.manifest.stopped)
    assert 10 < effect.n < QUESTIONS
    assert 0.17 < effect.ci_high - effect.ci_low <= 0.2


def test_declared_looks_are_at_equal_numbers_of_questions(project: Project) -> None:
    looked_at(project, "{effect: with_docs/double/length, decided: true, looks: 4}")

    _, run = ran(project)

    looking, effect = run.manifest.looking, the_effect(run)
    assert looking is not None
    assert (4, QUESTIONS // 4 * (looking.look or 0)) == (looking.looks, len(looking.asked))
    assert looking.look in (1, 2, 3)
    assert (len(looking.asked), "better") == (effect.n, effect.verdict)


def test_a_look_is_a_whole_source(project: Project) -> None:
    looked_at(project, dataset=", cluster_key: file")

    _, run = ran(project)

    looking = run.manifest.looking
    assert looking is not None
    files = [run.sample(name).metadata["file"] for name in looking.asked]
    assert len(files) == 2 * len({*files})
    assert 20 <= len(files) < QUESTIONS
    # A worker elsewhere has no samples but those that it is handed.
    (line,) = asyncio.run(ran_elsewhere(run, next(iter(run.known_trials))))
    assert b'"with_' in line or b'"baseline"' in line


async def ran_elsewhere(run: Run, key: TrialKey) -> list[bytes]:
    async with open_worker(run.manifest) as worker:
        return [(await worker.run(key, run.sample(key.sample))).line]


def test_a_run_that_ended_early_goes_on_only_by_another_config(project: Project) -> None:
    looked_at(project)
    _, run = ran(project)
    asked = the_effect(run).n
    ended = run.manifest.stopped

    again = project.keval("resume", str(run.path))
    project.write(more_yaml=CONFIG.format(until="null", dataset=""))
    extended = project.keval("resume", str(run.path), "--extend", "more.yaml")

    assert 2 == again.code
    assert f"{run.path} {ended}; to ask the others as well, write a config without `until`" in again.stderr
    assert 0 == extended.code
    run = open_run(run.path)
    effect = the_effect(run)
    assert (None, QUESTIONS, "better") == (run.manifest.stopped, effect.n, effect.verdict)
    assert asked < QUESTIONS
    assert 6 * QUESTIONS == len([*run.trials()])
    assert "intervals hold at every look" in extended.stdout  # as it was looked at before


def test_an_interrupted_run_is_looked_at_from_its_beginning(project: Project) -> None:
    looked_at(project)
    _, whole = ran(project)
    _, cut = ran(project)
    trials, scores = cut.trials_file, cut.path / "scores.jsonl"
    trials.write_bytes(b"".join(trials.read_bytes().splitlines(keepends=True)[:50]))
    scores.write_bytes(b"".join(scores.read_bytes().splitlines(keepends=True)[:30]))  # 20 trials are not scored yet
    for index in cut.path.glob("*.index"):
        index.unlink()
    manifest = json.loads((cut.path / "manifest.json").read_text(encoding="utf-8"))
    manifest |= {"looking": {**manifest["looking"], "ended": None, "asked": [], "look": None}, "stopped": None}
    (cut.path / "manifest.json").write_text(json.dumps({**manifest, "trials": 6 * QUESTIONS}), encoding="utf-8")
    unfinished = with_docs(open_run(cut.path).summary())
    assert (None, "interim") == (unfinished.ci_low, unfinished.verdict)

    done = project.keval("resume", str(cut.path))

    assert 0 == done.code
    resumed = open_run(cut.path)
    assert whole.manifest.looking == resumed.manifest.looking
    assert the_effect(whole).ci_low == the_effect(resumed).ci_low


def test_a_finished_run_that_is_scored_again_says_that_it_ended_early(project: Project) -> None:
    looked_at(project)
    _, run = ran(project)
    before = the_effect(run)

    done = project.keval("score", str(run.path))

    assert 0 == done.code
    again = open_run(run.path)
    assert run.manifest.looking == again.manifest.looking
    assert f"{run.manifest.stopped}." in done.stdout
    assert before == the_effect(again)


def test_intervals_of_an_unfinished_run_hold_at_every_look(project: Project) -> None:
    looked_at(project, "null")
    _, run = ran(project)
    finished = the_effect(run)
    lines = run.trials_file.read_bytes().splitlines(keepends=True)
    run.trials_file.write_bytes(b"".join(lines[:-1]))
    for index in run.path.glob("*.index"):
        index.unlink()

    summary = Follower(run.path).summary()

    effect = with_docs(summary)
    assert ("interim", QUESTIONS) == (effect.verdict, effect.n)
    assert 1.5 < (effect.ci_high - effect.ci_low) / (finished.ci_high - finished.ci_low) < 1.7
    assert effect.p > finished.p
    assert "Intervals hold at every look." in project.keval("report", str(run.path), "--explain").stdout


def test_a_replay_ends_as_the_run_did(project: Project) -> None:
    looked_at(project)
    _, run = ran(project, "--record")

    done, replay = ran(project, "--replay", str(run.path))

    assert 0 == done.code
    assert run.manifest.looking == replay.manifest.looking
    assert len([*run.trials()]) == len([*replay.trials()])
    assert run.id != replay.id
    assert (the_effect(run).ci_low, the_effect(run).p) == (the_effect(replay).ci_low, the_effect(replay).p)


@pytest.mark.parametrize(
    ("until", "told"),
    [
        ("{effect: with_docs/double/length}", "'until' takes `decided: true` or `width`, and not both"),
        ("{effect: with_docs/double/length, decided: true, width: 0.3}", "takes `decided: true` or `width`"),
        ("{effect: with_dogs/double/length, decided: true}", "no condition named 'with_dogs'; did you mean"),
        ("{effect: with_docs/double/depth, decided: true}", "no metric named 'double/depth'; did you mean"),
        ("{effect: baseline/double/length, decided: true}", "'baseline' is the baseline itself; name another"),
        (
            "{effect: double/length, decided: true}",
            "'double/length' could be of several conditions; name one, such as 'with_docs/double/length'",
        ),
        ("{effect: with_docs/seconds, decided: true}", "keval does not look at 'seconds' while a run goes on"),
        (
            "{effect: with_docs/double/length, decided: true, looks: 20}",
            "20 looks need 40 questions at least, and there are 30; declare fewer looks",
        ),
    ],
)
def test_what_cannot_be_looked_at_is_a_problem_at_its_place(project: Project, until: str, told: str) -> None:
    looked_at(project, until)

    done = project.run("eval.yaml", "--limit", "30")

    assert 2 == done.code
    assert told in done.stderr
    assert "eval.yaml:10:" in done.stderr


def test_one_condition_or_a_late_judge_cannot_be_looked_at(project: Project) -> None:
    looked_at(project, "{effect: baseline/brevity@reader, decided: true}")
    config = (project.root / "eval.yaml").read_text(encoding="utf-8")
    alone = "\n".join(line for line in config.splitlines() if "with_" not in line)
    judged = config.replace("baseline/brevity@reader", "with_docs/double/brevity@reader").replace(
        "metrics: [double/length]", "judges: {reader: {}}\nrubrics: [double/brevity]\nbudget: {usd: 1}"
    )
    project.write(alone_yaml=alone.replace("brevity@reader", "double/length"))
    project.write(judged_yaml=judged.replace("primary: [double/length]\n", ""))

    lonely, late = project.run("alone.yaml"), project.run("judged.yaml")

    assert (2, 2) == (lonely.code, late.code)
    assert "'baseline' is the only condition, so there is no effect; add another condition" in lonely.stderr
    assert (
        "with a budget of tokens or US dollars, the judge 'reader' grades when all trials are finished" in late.stderr
    )
    assert "name a metric, or remove `until`" in late.stderr


def test_few_questions_are_a_notice(project: Project) -> None:
    looked_at(project)

    done, run = ran(project, "--limit", "8")

    assert "intervals that hold at every look begin at 10 questions, and there are 8" in done.stderr
    effect = the_effect(run)
    assert (8, None, "unknown") == (effect.n, effect.ci_low, effect.verdict)


def test_a_run_ends_early_however_fast_its_answers_are_read(project: Project) -> None:
    looked_at(project, "null")
    _, asked = ran(project)
    lines = [
        {"id": trial.sample.id, "condition": trial.condition, "response": trial.output} for trial in asked.trials()
    ]
    looked_at(project)
    config = (project.root / "eval.yaml").read_text(encoding="utf-8")
    project.write(
        answers_jsonl="".join(json.dumps(line) + "\n" for line in lines),
        eval_yaml=config.replace("{scripted: {}}", "{scripted: {type: recorded, path: answers.jsonl}}"),
    )

    done, recorded = ran(project)

    looking, effect = recorded.manifest.looking, the_effect(recorded)
    assert looking is not None
    assert (0, "better", len(looking.asked)) == (done.code, effect.verdict, effect.n)
    assert 10 <= effect.n < QUESTIONS / 2
    assert "intervals hold at every look" in done.stdout
