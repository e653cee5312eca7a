"""The indexes of a run: what is read does not depend on them, and a run that goes on has them again."""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from keval import Run, open_run
from keval_analysis.neighbours import beside, trials_of
from tests.conftest import Project

CONFIG = """
name: indexed
dataset: {path: questions.jsonl}
agents: {scripted: {}, second: {type: scripted}}
conditions: {baseline: {}, other: {system_prompt: Speak.}}
metrics: [double/length, double/grade]
execution: {num_repetitions: 3, seed: 4}
"""
IDS = ("a", "b/1", "ü")
HEAD = 5
"""Numbers before the first entry, as the module says."""


@pytest.fixture
def run(project: Project) -> Run:
    questions = [{"id": name, "question": "?", "level": 1, "says": f"So {name}."} for name in IDS]
    project.write(eval_yaml=CONFIG, questions_jsonl="".join(json.dumps(each) + "\n" for each in questions))
    assert 0 == project.keval("run", "eval.yaml").code
    return open_run()


def everything(path: Path) -> tuple[Any, ...]:
    """Return what is read of a run in every way that needs to know where things are."""
    run = Run(path)
    trials = [*run.trials()]
    return (
        trials,
        [*run.scores()],
        [run.trial(trial.id) for trial in trials],
        [run.scores_of(trial.id) for trial in trials],
        [*run.known_trials],
        run.trial_ids(failed=False),
        run.count_trials(),
    )


def numbers(file: Path) -> array[int]:
    return array("Q", file.read_bytes())


def removed(file: Path) -> None:
    file.unlink()


def torn(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-3])


def without_an_entry(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-16])


def of_another_order(file: Path) -> None:
    found = numbers(file)
    found[1] ^= 1
    file.write_bytes(found.tobytes())


def of_another_format(file: Path) -> None:
    file.write_bytes(bytes(64))


def left_growing(file: Path) -> None:
    found = numbers(file)
    found[2:] = array("Q", (0, 0, 0, 3, 1 << 20))
    file.write_bytes(found.tobytes())


def of_a_file_since_changed(file: Path) -> None:
    lines = file.with_suffix(".jsonl")
    before = lines.stat().st_mtime_ns
    lines.write_bytes(b"".join(reversed(lines.read_bytes().splitlines(keepends=True))))
    os.utime(lines, ns=(before, before + 1))


SPOILED: list[Callable[[Path], None]] = [
    *(removed, torn, without_an_entry, of_another_order, of_another_format, left_growing, of_a_file_since_changed)
]


@pytest.mark.parametrize("spoil", SPOILED, ids=lambda spoil: spoil.__name__)
def test_what_is_read_does_not_depend_on_the_index(run: Run, spoil: Callable[[Path], None]) -> None:
    trials, scores, *rest = everything(run.path)
    for name in ("trials.index", "scores.index"):
        spoil(run.path / name)

    again, scored, *others = everything(run.path)

    assert (36, 72) == (len(trials), len(scores))
    assert (trials, rest[0], rest[2:]) == (again, others[0], others[2:])
    # Scores of one trial are in the order of their file.
    assert sorted(map(str, scores)) == sorted(map(str, scored))


def test_the_index_of_another_run_is_not_used(project: Project, run: Run) -> None:
    assert 0 == project.keval("run", "eval.yaml", "--sample-id", "a").code
    other = next(folder for folder in (project.root / "results/indexed").iterdir() if folder.name != run.id)
    before = everything(other)

    for name in ("trials.index", "scores.index"):
        (other / name).write_bytes((run.path / name).read_bytes())

    assert before == everything(other)


def test_an_index_has_each_trial_in_the_order_of_the_run_and_where_its_lines_begin(run: Run) -> None:
    content = run.trials_file.read_bytes()

    head, entries = numbers(run.path / "trials.index")[:HEAD], numbers(run.path / "trials.index")[HEAD:]

    ranks, starts = entries[::2], entries[1::2]
    found = [json.loads(content[start >> 1 :].partition(b"\n")[0])["id"] for start in starts]
    assert [len(content), run.trials_file.stat().st_mtime_ns, 36] == [*head[2:]]
    assert [trial.id for trial in run.trials()] == found
    assert [*ranks] == sorted({*ranks})


def test_neighbours_are_found_by_the_index(run: Run) -> None:
    key = run.trial("second/other/b/1/2").key

    near = beside(run, key)
    first = beside(run, run.trial("second/other/a/2").key)

    assert near.previous is not None
    assert near.following is not None
    assert ("second/other/a/2", "second/other/ü/2") == (near.previous.id, near.following.id)
    assert (1, 3, None, 0) == (near.place, near.of, first.previous, first.place)
    assert {f"{agent}/{condition}/b/1/{n}" for agent in run.manifest.agents for condition in ("baseline", "other")
            for n in (1, 2, 3)} == {each.id for each in trials_of(run, "b/1")}  # fmt: skip


def test_a_run_that_is_written_to_is_read_by_its_growing_index(run: Run) -> None:
    index = run.path / "trials.index"
    found = numbers(index)
    found[2:HEAD] = array("Q", (0, 0, 0))
    index.write_bytes(found[:-2].tobytes())  # as if the last trial were not noted yet

    with FileLock(run.path / ".lock"):
        while_written = (Run(run.path).count_trials(), len([*Run(run.path).trials()]))
    ended = (Run(run.path).count_trials(), len([*Run(run.path).trials()]))

    assert ((35, 35), (36, 36)) == (while_written, ended)


@pytest.mark.slow
@pytest.mark.parametrize("spoil", [None, *SPOILED[:-1]], ids=lambda spoil: spoil.__name__ if spoil else "old")
def test_resume_runs_exactly_what_is_missing_and_writes_the_indexes_again(
    project: Project, run: Run, spoil: Callable[[Path], None] | None
) -> None:
    whole = everything(run.path)
    lines = run.trials_file.read_bytes().splitlines(keepends=True)
    kept = b"".join(lines[:20])
    run.trials_file.write_bytes(kept + lines[20][:40])  # the power was cut
    if spoil:
        spoil(run.path / "trials.index")

    outcome = project.keval("resume", run.id)

    assert 0 == outcome.code, outcome.stderr
    again = run.trials_file.read_bytes()
    assert (kept, 36) == (again[: len(kept)], again.count(b"\n"))
    assert sorted(trial.id for trial in whole[0]) == sorted(trial["id"] for trial in project.lines("trials.jsonl"))
    assert 36 == numbers(run.path / "trials.index")[4] == numbers(run.path / "scores.index")[4]
    assert whole[4:] == everything(run.path)[4:]


def test_failures_that_are_run_again_are_found_where_they_are_now(project: Project) -> None:
    questions = [{"id": name, "question": "?", "says": "So.", "level": 1, "fails_once": name == "b"} for name in "abc"]
    config = """
name: failing
dataset: {path: questions.jsonl}
agents: {mortal: {type: double/mortal, journal: asked.txt, fails: [b], healed: healed.txt}}
metrics: [double/length]
execution: {retry: {max_attempts: 1}}
"""
    project.write(eval_yaml=config, questions_jsonl="".join(json.dumps(each) + "\n" for each in questions))
    assert 3 == project.keval("run", "eval.yaml").code
    answered = open_run().trial_ids(failed=False)
    project.write(healed_txt="")

    outcome = project.keval("resume", "latest", "--retry-failed")

    assert (0, {"mortal/baseline/a/1", "mortal/baseline/c/1"}) == (outcome.code, answered)
    assert open_run().trial("mortal/baseline/b/1").failure is None
    assert open_run().trial_ids() == open_run().trial_ids(failed=False)


def test_an_id_that_the_run_does_not_have_is_told_with_the_nearest(project: Project, run: Run) -> None:
    outcome = project.keval("show", run.id, "--trial", "second/other/b/1/02")

    assert 2 == outcome.code
    assert "did you mean 'second/other/b/1/2'?" in outcome.stderr
