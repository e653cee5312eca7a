"""Anchors: labelled answers that judges grade in every run, and how a judge that changed is told by them."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from keval import Run
from keval.store.run import list_runs
from keval_replay.recording import Recording
from tests.conftest import Project

CONFIG = """
name: judged
dataset: {path: questions.jsonl}
agents: {scripted: {}}
conditions: {baseline: {}, terse: {}}
rubrics: [{tone: {instructions: Is it polite?, levels: {1: rude, 2: cool, 3: fair, 4: kind, 5: warm}}}]
judges: {digit: {type: double/digit, journal: asked.txt}}
metrics: [double/characters]
anchors: anchors.jsonl
"""
QUESTIONS = [{"id": f"q{place}", "question": f"{place}?"} for place in range(1, 5)]
LEVELS = [1, 2, 3, 3, 2, 1, 2, 3, 1, 2, 3, 2]


def anchor(place: int, level: int, **more: Any) -> dict[str, Any]:
    said = {"question": f"How ({place})?", "response": f"{level} of five", "levels": {"tone": level}}
    return {"id": f"a{place}", "answer": "Well.", "history": [{"role": "user", "content": "Hi"}], **said, **more}


ANCHORS = [anchor(place, level) for place, level in enumerate(LEVELS)]


def written(project: Project, config: str = CONFIG, anchors: list[dict[str, Any]] | None = None) -> None:
    lines = {"questions": QUESTIONS, "anchors": ANCHORS if anchors is None else anchors}
    files = {f"{name}_jsonl": "".join(f"{json.dumps(line)}\n" for line in found) for name, found in lines.items()}
    project.write(eval_yaml=config, **files)


def judged(project: Project) -> list[str]:
    """What the judge was asked since this was asked, by sample."""
    journal = project.root / "asked.txt"
    found = [line.split()[0] for line in journal.read_text("utf-8").splitlines()] if journal.exists() else []
    journal.unlink(missing_ok=True)
    return found


def runs(project: Project) -> list[Run]:
    return list_runs(project.root / "results")


def test_each_run_has_its_judges_grade_the_anchors_after_its_trials_and_nothing_else_does(project: Project) -> None:
    written(project)

    assert 0 == project.run("eval.yaml", "-q").code
    asked = judged(project)
    data = project.keval("report", "latest", "--json").data
    assert 0 == project.keval("score", "latest", "-q").code
    again = judged(project)
    (project.run_directory() / "anchor_scores.jsonl").write_text("", "utf-8")
    assert 0 == project.keval("score", "latest", "--missing", "-q").code

    assert ["q"] * 8 + ["a"] * 12 == [name[0] for name in asked]
    assert sorted(asked) == sorted(again)
    assert sorted(line["id"] for line in ANCHORS) == sorted(judged(project))
    lines = project.lines("anchor_scores.jsonl")
    assert {("tone", "digit", "", "")} == {(e["metric"], e["judge"], e["agent"], e["condition"]) for e in lines}
    assert 12 == len(lines)
    assert 16 == len(project.lines("scores.jsonl"))  # of eight trials, by a judge and a metric
    (found,) = data["anchors"]
    assert ("tone", 12, 0, 12, 1.0, 0.0) == tuple(
        found[key] for key in ("metric", "graded", "failed", "n", "same", "bias")
    )
    assert "no earlier run of the evaluation had this judge" in found["drift"]["reason"]


def test_a_judge_that_changed_is_told_with_an_interval_and_fails_the_gate(project: Project) -> None:
    gated = f"{CONFIG}gates: ['judge_drift <= 0.1', 'low(judge_drift) <= 0.1']\n"
    written(project, gated)
    first = project.run("eval.yaml")
    second = project.run("eval.yaml")
    written(project, gated.replace("asked.txt", "asked.txt, shift: 1"), [*ANCHORS[1:], anchor(0, 5), anchor(77, 1)])
    third = project.run("eval.yaml")
    last = runs(project)
    told = project.keval("report", "latest", "--json").data
    page = " ".join(project.keval("report", "latest", "--explain").stdout.split())
    written(project, gated)
    fourth = project.run("eval.yaml")
    back = project.keval("report", "latest", "--json").data

    assert [0, 0, 1, 1] == [done.code for done in (first, second, third, fourth)]
    assert (-1.0, ["failed"] * 2) == (
        back["anchors"][0]["drift"]["difference"],
        [gate["verdict"] for gate in back["gates"]],
    )
    assert "no earlier run of the evaluation had this judge grade anchors" in " ".join(first.stdout.split())
    assert "judge drift" not in second.stdout
    drift = told["anchors"][0]["drift"]
    # One anchor is another one now, and one is new.
    assert (last[1].id, 11, 1.0) == (drift["against"], drift["n"], drift["difference"])
    assert 0 < drift["ci_low"] < 1 <= drift["ci_high"]
    assert ["the option shift"] == drift["changes"]
    assert f"since {last[1].id}: tone by digit; changed since then: the option shift" in page
    agreement = r"Anchors, tone by digit: 8 % of 13 on the level of people, judge - people \+0.92 .*?; drift \+1.00"
    assert re.search(agreement, page)
    assert re.search(r"judge drift \+1\.00 \[\+0\.\d\d, \+1\.00\] on 11 anchors since", page)
    gates = [(gate["verdict"], gate["value"], gate["against"]) for gate in told["gates"]]
    assert [("failed", 1.0, last[1].id)] * 2 == gates


def test_the_earlier_run_is_one_by_the_same_judge_model_and_rubric(project: Project) -> None:
    written(project)
    project.run("eval.yaml", "-q")
    written(project, CONFIG.replace("kind, 5", "friendly, 5"))
    project.run("eval.yaml", "-q")
    other = project.keval("report", "latest", "--json").data["anchors"][0]["drift"]
    written(project, CONFIG.replace("name: judged", "name: else"))
    project.run("eval.yaml", "-q")
    elsewhere = project.keval("report", "latest", "--json").data["anchors"][0]["drift"]
    written(project)
    project.run("eval.yaml", "-q")
    same = project.keval("report", "latest", "--json").data["anchors"][0]["drift"]

    assert [None, None] == [other["difference"], elsewhere["difference"]]
    assert (next(run.id for run in runs(project) if run.manifest.evaluation == "judged"), 0.0) == (
        same["against"],
        same["difference"],
    )


def test_an_interrupted_run_grades_what_it_lacks_when_it_is_resumed(project: Project) -> None:
    written(project, CONFIG.replace("double/digit, journal: asked.txt", "strict, down: true"))
    assert 3 == project.run("eval.yaml", "-q").code
    failed = project.keval("report", "latest", "--json").data["anchors"][0]
    folder = project.run_directory()
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    manifest["config"]["judges"]["digit"]["down"] = False
    (folder / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    (project.root / "anchors.jsonl").write_text(f"{json.dumps(anchor(5, 5))}\n", "utf-8")  # the run keeps its own

    assert 0 == project.keval("resume", "latest", "--force", "-q").code

    found = project.keval("report", "latest", "--json").data["anchors"][0]
    assert (0, 12) == (failed["graded"], failed["failed"])
    assert (12, 0) == (found["graded"], found["failed"])


def test_a_replay_plays_the_judgements_of_anchors(project: Project, simulated_here: None) -> None:
    config = """
    name: judged
    dataset: {path: questions.jsonl}
    agents: {scripted: {}}
    judges: {openai: {model: simulated/judge}}
    rubrics: [completeness]
    anchors: anchors.jsonl
    """
    labelled = [
        {
            "id": "a",
            "question": "Port?",
            "answer": "It is 7443.",
            "response": "It is 7443.",
            "levels": {"completeness": 5},
        },
        {"id": "b", "question": "Port?", "answer": "It is 7443.", "response": "No.", "levels": {"completeness": 1}},
    ]
    written(project, config, labelled)
    assert 0 == project.run("eval.yaml", "--record", "-q").code
    recorded = Run(project.run_directory())
    (project.root / "anchors.jsonl").unlink()

    assert 0 == project.run("eval.yaml", "--replay", recorded.id, "-q").code

    played = runs(project)[-1]
    assert played.id != recorded.id
    assert [(line["sample"], line["value"]) for line in lines(recorded)] == [
        (line["sample"], line["value"]) for line in lines(played)
    ]
    assert {"a", "b"} == {line["sample"] for line in lines(played)}
    assert Recording.open(recorded).of_judgement("/anchor/a", "openai", 1)
    (found,) = project.keval("report", played.id, "--json").data["anchors"]
    assert "the judge was not asked: the run is a replay" == found["drift"]["reason"]


def lines(run: Run) -> list[dict[str, Any]]:
    text = (run.path / "anchor_scores.jsonl").read_text("utf-8")
    return sorted((json.loads(line) for line in text.splitlines()), key=lambda line: str(line["sample"]))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"levels": {"tune": 3}}, "anchors.jsonl:1: no judge grades by a rubric 'tune'; did you mean 'tone'?"),
        ({"levels": {"tone": 6}}, "anchors.jsonl:1: 6 is no level of 'tone'; it has 1, 2, 3, 4, 5"),
        ({"levels": {"tone": "good"}}, "anchors.jsonl:1: the level of 'tone' is a number, got 'good'"),
        ({"levels": {}}, "anchors.jsonl:1: an anchor has the levels that people gave it"),
        ({"response": None}, "anchors.jsonl:1: an anchor has the answer that people labelled under `response`"),
        ({"turns": ["And?"]}, "anchors.jsonl:1: an anchor has no `turns`"),
        ({"question": 3}, "anchors.jsonl:1: "),
    ],
)
def test_an_anchor_that_is_wrong_is_told_at_its_line_before_anything_is_run(
    project: Project, change: dict[str, Any], problem: str
) -> None:
    written(project, anchors=[{**ANCHORS[0], **change}, ANCHORS[1]])

    done = project.keval("run", "eval.yaml")

    assert 2 == done.code
    assert problem in " ".join(done.stderr.split())
    assert [] == runs(project)


def test_an_anchor_has_the_golden_answer_that_its_rubric_needs(project: Project) -> None:
    unanswered = {key: value for key, value in ANCHORS[0].items() if key != "answer"}
    written(project, CONFIG.replace("{tone: {", "{tone: {needs_answer: true, "), [unanswered, ANCHORS[1]])

    done = project.keval("validate", "eval.yaml")

    told = "anchors.jsonl:1: 'tone' compares with the golden answer, and the anchor has none; add an `answer`"
    assert (2, True) == (done.code, told in " ".join(done.stderr.split()))


def test_a_judge_that_compares_has_no_drift(project: Project) -> None:
    written(
        project, f"{CONFIG.replace('judges: {', 'judges: {longer: {type: double/longer}, ')}gates: [judge_drift <= 5]\n"
    )

    project.run("eval.yaml")

    summary = project.read("summary.json")
    assert [("tone", "digit")] == [(found["metric"], found["judge"]) for found in summary["anchors"]]
    assert ["digit"] == [gate["judge"] for gate in summary["gates"]]


def test_what_cannot_be_had_of_anchors_is_said(project: Project) -> None:
    def problem(config: str) -> str:
        written(project, config)
        done = project.keval("validate", "eval.yaml")
        return f"{done.code} {' '.join(done.stderr.split())}"

    unjudged = re.sub("(rubrics|judges):.*\n", "", CONFIG)
    assert "0 note: eval.yaml:6:1: no judge grades anchors; add `judges:`" in problem(unjudged)
    assert "there is no file" in problem(CONFIG.replace("anchors.jsonl", "nowhere.jsonl"))
    told = "'judge_drift' is of judges: it takes neither an agent, nor a condition, nor a sign"
    assert told in problem(f"{CONFIG}gates: ['terse/judge_drift <= 0.1']\n")
    assert told in problem(f"{CONFIG}gates: ['judge_drift <= +0.1']\n")
    written(project, f"{CONFIG.replace('anchors: anchors.jsonl', '')}gates: ['judge_drift <= 0.1']\n")
    assert "undecided (the run has no anchors" in " ".join(project.run("eval.yaml").stdout.split())
    assert not (project.run_directory() / "anchors.jsonl").exists()


def test_workers_elsewhere_grade_anchors_too(project: Project) -> None:
    written(project, f"{CONFIG}execution: {{executor: double/apart}}\n")

    assert 0 == project.run("eval.yaml", "-q").code

    (found,) = project.keval("report", "latest", "--json").data["anchors"]
    assert (12, 0, 0.0) == (found["graded"], found["failed"], found["bias"])
    assert 16 == len(project.lines("scores.jsonl"))
