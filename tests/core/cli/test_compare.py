"""`keval compare`: the arms of one run, and of several."""

from __future__ import annotations

import re

import pytest

from keval.store.run import Run
from tests.conftest import Project
from tests.ratings import CONFIG, run_of

BEFORE = {"a": 0.25, "b": 0.5, "c": 0.5, "d": 0.75, "e": 0.5, "f": 0.25}
TOLD = """\
NOW against BEFORE
other differences, before → now:
  evaluation            before → now
  answers of agent one  DIGEST
  prompt of with_docs   none → Answer briefly.

one: every arm against the same of BEFORE
  difference, 95 % interval, paired by question
                                                             -0.4      0           +0.6
  rating  baseline   0.46 → 0.75  +0.29 [-0.33, +0.60]  n=6    ├───────┼──────●───────┤  cannot tell
          with_docs  0.46 → 0.75  +0.29 [-0.33, +0.60]  n=6    ├───────┼──────●───────┤  cannot tell
  cannot tell; 80 of 100 such runs would see 4.53 characters or more: characters

got worse (4 scores of samples)
  d  one baseline   rating      0.75 → 0.50   -0.25
  d  one with_docs  rating      0.75 → 0.50   -0.25
  c  one baseline   characters  9.00 → 12.00  +3.00
  c  one with_docs  characters  9.00 → 12.00  +3.00
got better (14 scores of samples, the 10 most)
  f  one with_docs  rating      0.25 → 0.75   +0.50
  e  one with_docs  rating      0.50 → 1.00   +0.50
  b  one with_docs  rating      0.50 → 1.00   +0.50
  f  one baseline   rating      0.25 → 0.75   +0.50
  e  one baseline   rating      0.50 → 1.00   +0.50
  b  one baseline   rating      0.50 → 1.00   +0.50
  c  one with_docs  rating      0.50 → 0.75   +0.25
  a  one with_docs  rating      0.25 → 0.50   +0.25
  c  one baseline   rating      0.50 → 0.75   +0.25
  a  one baseline   rating      0.25 → 0.50   +0.25
"""
ONLY = """\
only   6 questions × 1   one   baseline → with_docs

with_docs against baseline
  no difference on any question: rating, characters

one, baseline
  mean, 95 % interval, n questions
  rating       0.46  [0.26, 0.67]  n=6
  characters  10.50  ±1.72         n=6    characters, less is better

one, with_docs
  mean, 95 % interval, n questions
  rating       0.46  [0.26, 0.67]  n=6
  characters  10.50  ±1.72         n=6    characters, less is better
"""
NOW = {"a": 0.5, "b": 1.0, "c": 0.75, "d": 0.5, "e": 1.0, "f": 0.75}


@pytest.fixture
def runs(project: Project) -> tuple[Run, Run]:
    """A run and an earlier one, of other answers to the same questions."""
    before = run_of(project, "before", BEFORE)
    return run_of(project, "now", NOW, prompt="Answer briefly."), before


def test_what_else_differs_comes_first_and_the_samples_last(project: Project, runs: tuple[Run, Run]) -> None:
    now, before = runs

    outcome = project.keval("compare", before.id, now.id)

    said = re.sub("[0-9a-f]{12} → [0-9a-f]{12}", "DIGEST", outcome.stdout)
    assert (0, "") == (outcome.code, outcome.stderr)
    assert TOLD == said.replace(now.id, "NOW").replace(before.id, "BEFORE")


def test_of_long_texts_only_what_differs_is_shown_and_once_for_all_conditions(project: Project) -> None:
    prompt = "You are an assistant of few words. {} Answer in one sentence, with a source, if there is any."
    run_of(project, "one", BEFORE)
    found = []
    for asked in ("Be brief.", "Be very brief."):
        config = CONFIG.format(name="one", prompt=prompt.format(asked))
        config = config.replace("baseline: {}", f'baseline: {{system_prompt: "{prompt.format(asked)}"}}')
        project.write(one_yaml=config)
        found.append(project.keval("run", "one.yaml", "--json").data["run"])

    said = project.keval("compare", *found).stdout

    told = " ".join(said[said.index("other differences") : said.index("\n\n")].split())
    assert (
        "other differences, before → now: prompt of baseline, with_docs"
        " … assistant of few words. Be brief. Answer in one sentence, …"
        " → … assistant of few words. Be very brief. Answer in one sentence, …"
    ) == told


def test_on_a_narrow_terminal_arms_go_before_means(project: Project) -> None:
    runs = [
        run_of(project, name, {f"a-question-with-a-long-name-{sample}": value for sample, value in answers.items()})
        for name, answers in (("before", BEFORE), ("now", NOW))
    ]

    said = project.keval("compare", *(run.id for run in runs), env={"COLUMNS": "60"}).stdout

    assert "  a-question-with-a-long-…  one baseline   rating      -0.25" in said.splitlines()


def test_machines_get_arms_effects_differences_and_changes(project: Project, runs: tuple[Run, Run]) -> None:
    now, before = runs

    data = project.keval("compare", before.id, now.id, "--json").data

    arm = {"agent", "condition", "metric", "judge", "n", "unscored", "neutral", "mean", "stderr", "ci_low", "ci_high"}
    effect = {"metric", "judge", "agent", "condition", "against", "n", "difference", "ci_low", "ci_high"}
    assert [] == [found for found in data["arms"] if not {"run", *arm} <= found.keys()]
    assert [] == [found for found in data["effects"] if not {*effect, "p", "p_adjusted", "mde"} <= found.keys()]
    assert [before.id] * 4 + [now.id] * 4 == [found["run"] for found in data["arms"]]
    assert [before.id, now.id] == [found["run"] for found in data["runs"]]
    assert {"agent": "one", "condition": "baseline", "run": before.id} == data["effects"][0]["against"]
    assert {(now.id, before.id)} == {(found["run"], found["against"]) for found in data["changes"]}
    assert {("d", -0.25)} == {
        (found["sample"], found["difference"])
        for found in data["changes"]
        if found["metric"] == "number/rating" and found["difference"] < 0
    }
    prompt = {"what": "prompt of with_docs", "now": "Answer briefly.", "before": "none"}
    assert {"run": now.id, "against": before.id, **prompt} in data["differences"]


def test_several_runs_are_held_against_the_first(project: Project, runs: tuple[Run, Run]) -> None:
    now, before = runs
    third = run_of(project, "third", {"a": 1.0, "b": 1.0})

    data = project.keval("compare", before.id, now.id, third.id, "--json").data
    said = project.keval("compare", before.id, now.id, third.id).stdout

    assert {(now.id, before.id), (third.id, before.id)} == {
        (found["run"], found["against"]["run"]) for found in data["effects"]
    }
    titles = [line for line in said.splitlines() if line.endswith(f" against {before.id}")]
    assert [f"{now.id} against {before.id}", f"{third.id} against {before.id}"] == titles


def test_one_run_shows_its_effects_and_its_means(project: Project) -> None:
    only = run_of(project, "only", BEFORE, prompt="Answer briefly.")

    outcome = project.keval("compare", only.id)
    data = project.keval("compare", "latest", "--json").data

    assert ONLY == outcome.stdout
    assert (["condition"] * 2, 4) == ([effect["kind"] for effect in data["effects"]], len(data["arms"]))


def test_runs_that_cannot_be_compared_are_refused(project: Project, runs: tuple[Run, Run]) -> None:
    now, before = runs
    other = run_of(project, "other", {"x": 0.5, "y": 0.5})

    itself = project.keval("compare", now.id, str(now.path))
    apart = project.keval("compare", before.id, other.id)

    assert (2, 2) == (itself.code, apart.code)
    assert f"error: a run is compared with itself: {now.id}, {now.path} name the same run" in itself.stderr
    assert "have no sample in common that both have a score for; compare runs of one dataset" in apart.stderr
