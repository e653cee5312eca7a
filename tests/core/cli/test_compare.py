"""`keval compare`: the arms of one run, and of several."""

from __future__ import annotations

import json
import re
from statistics import fmean

import pytest

from keval import open_run
from keval.store.run import Run
from tests.conftest import Project
from tests.ratings import CONFIG, run_of

BEFORE = {"a": 0.25, "b": 0.5, "c": 0.5, "d": 0.75, "e": 0.5, "f": 0.25}
TOLD = """\
NOW against BEFORE
other differences, before → now:
  evaluation              before → now
  answers of agent one    DIGEST
  prompt of with_docs     none → Answer briefly.
  option agents.one.path  before.jsonl → now.jsonl

one: every arm against the same of BEFORE      difference [95 % interval], n questions
                                                             -0.4      0           +0.6
  rating  baseline   0.46 → 0.75  +0.29 [-0.33, +0.60]  n=6    ├───────┼──────●───────┤  cannot tell
          with_docs  0.46 → 0.75  +0.29 [-0.33, +0.60]  n=6    ├───────┼──────●───────┤  cannot tell
  cannot tell from so few questions: rating 6
  cannot tell differences of less than: characters 4.53 characters

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

more     all effects: keval compare BEFORE NOW --explain
"""
ONLY = """\
only   6 questions × 1   one   baseline → with_docs

with_docs against baseline
  equal on all 6 questions: rating, characters

one, baseline
  mean [95 % interval], n questions
  rating       0.46  [0.26, 0.67]   n=6
  characters  10.50  [8.78, 12.22]  n=6    characters, less is better

one, with_docs
  mean [95 % interval], n questions
  rating       0.46  [0.26, 0.67]   n=6
  characters  10.50  [8.78, 12.22]  n=6    characters, less is better
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
        "other differences, before → now: prompt of baseline, with_docs You are an assistant of few words."
        " - Be brief. + Be very brief. Answer in one sentence, with a source, if there is any."
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


OTHERS = """\
NOW against BEFORE
agents of other names are compared, question by question: ms with gadk
other differences, before → now:
  agent                  gadk → ms
  evaluation             before → now
  dataset                DIGEST
  samples                6 → 5
  answers of agent ms    DIGEST
  option agents.ms.path  before.jsonl → now.jsonl

ms against gadk of BEFORE
"""


def test_the_only_agents_of_two_runs_are_paired_by_question(project: Project) -> None:
    before = run_of(project, "before", BEFORE, agent="gadk")
    now = run_of(project, "now", {name: NOW[name] for name in "abcde"}, agent="ms")

    data = project.keval("compare", before.id, now.id, "--json").data
    said = re.sub("[0-9a-f]{12} → [0-9a-f]{12}", "DIGEST", project.keval("compare", before.id, now.id).stdout)

    rated = [effect for effect in data["effects"] if effect["metric"] == "number/rating"]
    by_hand = fmean(NOW[name] - BEFORE[name] for name in "abcde")
    assert [("ms", "gadk", condition, 5, 1) for condition in ("baseline", "with_docs")] == [
        (each["agent"], each["against"]["agent"], each["condition"], each["n"], each["dropped"]) for each in rated
    ]
    assert [pytest.approx(by_hand)] * 2 == [effect["difference"] for effect in rated]
    assert [{"run": now.id, "agent": "ms", "against": {"run": before.id, "agent": "gadk"}}] == data["agents"]
    assert {"run": now.id, "against": before.id, "what": "agent", "now": "ms", "before": "gadk"} in data["differences"]
    assert said.replace(now.id, "NOW").replace(before.id, "BEFORE").startswith(OTHERS)


def two_agents(project: Project, name: str, **answers: dict[str, float]) -> Run:
    """Run an evaluation of several agents, each with its recorded answers."""
    agents = ", ".join(f"{agent}: {{type: recorded, path: {name}-{agent}.jsonl}}" for agent in answers)
    questions = [{"id": sample, "question": "?"} for sample in next(iter(answers.values()))]
    project.write(
        **{f"{name}_yaml": f"agents: {{{agents}}}\ndataset: {{path: q.jsonl}}\nmetrics: [number/rating]\n"},
        q_jsonl="".join(json.dumps(line) + "\n" for line in questions),
    )
    for agent, told in answers.items():
        lines = [json.dumps({"id": sample, "response": str(answer)}) for sample, answer in told.items()]
        (project.root / f"{name}-{agent}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    assert 0 == project.keval("run", f"{name}.yaml", "-q").code
    return open_run(next((project.root / "results" / name).iterdir()))


def test_agents_that_are_named_are_paired_and_no_others(project: Project) -> None:
    before = two_agents(project, "before", gadk=BEFORE, ms=NOW)
    now = two_agents(project, "now", ms={**BEFORE, "a": 0.75}, openai=NOW)

    named = project.keval("compare", before.id, now.id, "--agent", "gadk=openai", "--agent", "gadk=ms", "--json").data
    alone = project.keval("compare", before.id, now.id, "--json").data

    differences = {name: NOW[name] - BEFORE[name] for name in BEFORE}
    assert {
        ("openai", "gadk"): pytest.approx(fmean(differences.values())),
        ("ms", "gadk"): pytest.approx((0.75 - BEFORE["a"]) / len(BEFORE)),
    } == {(each["agent"], each["against"]["agent"]): each["difference"] for each in named["effects"]}
    changed = {each["sample"]: each["difference"] for each in named["changes"] if each["agent"] == "openai"}
    assert differences == changed
    assert [("ms", "ms")] == [(each["agent"], each["against"]["agent"]) for each in alone["effects"]]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (["--agent", "gdk=openai"], "{before} has no agent 'gdk'; it has gadk, ms"),
        (["--agent", "gadk=gadk"], "{now} has no agent 'gadk'; it has ms, openai"),
        (["--agent", "gadk"], "'gadk' is no pair; write A=B, with A of the first run and B of the others"),
        (["--agent", "gadk=ms", "--agent", "ms=ms"], "'ms' is paired twice"),
    ],
)
def test_agents_that_cannot_be_paired_are_told(project: Project, given: list[str], problem: str) -> None:
    before = two_agents(project, "before", gadk=BEFORE, ms=NOW)
    now = two_agents(project, "now", ms=BEFORE, openai=NOW)

    outcome = project.keval("compare", before.id, now.id, *given)
    alone = project.keval("compare", before.id, "--agent", "gadk=ms")

    assert (2, "") == (outcome.code, outcome.stdout)
    assert problem.format(before=f"results/before/{before.id}", now=f"results/now/{now.id}") in outcome.stderr
    assert (2, True) == (alone.code, "--agent pairs the agents of two runs; name another run" in alone.stderr)


def test_a_gate_pairs_agents_by_name_alone(project: Project) -> None:
    before = run_of(project, "before", BEFORE, agent="gadk")
    run_of(project, "now", NOW, agent="ms")

    outcome = project.keval("report", "latest", "--fail-on-regression", before.id)

    (told,) = [line for line in outcome.stdout.splitlines() if "no regression against" in line]
    assert "undecided" in told
    assert "the runs share no agent and condition (compared by label)" in " ".join(outcome.stdout.split())


def test_histories_of_the_agents_own_are_told(project: Project) -> None:
    found = []
    for agent in ("gadk", "ms"):
        project.write(q_jsonl='{"id": "a", "question": "And there?"}\n{"id": "b", "question": "?"}\n')
        answers = [
            {"id": "a", "response": "0.5", "history": [{"user": f"Hello, {agent}"}]},
            {"id": "b", "response": "0.5", "history": [{"user": "Hello"}]},
        ]
        project.write(**{f"{agent}_jsonl": "".join(json.dumps(line) + "\n" for line in answers)})
        config = f"agents: {{{agent}: {{type: recorded, path: {agent}.jsonl}}}}\ndataset: {{path: q.jsonl}}\n"
        project.write(**{f"{agent}_yaml": config + "metrics: [number/rating]\n"})
        found.append(project.keval("run", f"{agent}.yaml", "--json").data["run"])

    data = project.keval("compare", *found, "--json").data

    told = {each["what"]: (each["before"], each["now"]) for each in data["differences"]}
    assert ("2 samples", "2 samples, on 1 not the same") == told["histories of the agents' own"]
