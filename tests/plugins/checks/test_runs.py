"""Checks and solutions in runs, and `keval check`, through the command line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from keval import open_run
from keval_testing import Project, stub_server

CONFIG = """
dataset: {path: questions.yaml}
agents: {solver: {type: checks/solution}}
contexts:
  stub: STUB
  changed: {from: stub, without: [count], results: {fixed: Nothing.}}
conditions:
  with: {contexts: [changed]}
workspace: {files: {in.txt: "1\\n2\\n"}}
verify:
  - {name: report, file: {path: out.md, contains: 2 lines}}
  - {name: input, unchanged: in.txt}
  - name: counted
    mcp: {server: stub, tool: count, equals: "1"}
metrics: [testing/words]
"""
QUESTIONS = """
- id: good
  question: How many lines?
  solution:
    files: {notes/a.txt: one}
    calls: [{tool: look_up, arguments: {question: "?"}}]
    command: 'echo "$(wc -l < in.txt) lines" > out.md && test -f notes/a.txt'
    answer: Two.
  verify: [{name: note, file: {path: notes/a.txt, equals: one}}]
- {id: bad, question: How many?, solution: "echo 3 > in.txt"}
- {id: breaks, question: How many?, solution: [sh, -c, "echo why; exit 3"]}
- {id: easy, question: How many?, solution: {answer: Two.}, verify: [{name: report, file: in.txt}]}
- {id: unsolved, question: How many?}
"""


@pytest.fixture
def project(tmp_path: Any) -> Project:
    project = Project.new(tmp_path)
    project.write("eval.yaml", CONFIG.replace("STUB", json.dumps({**stub_server("stateful"), "isolation": "trial"})))
    project.write("questions.yaml", QUESTIONS)
    return project


def checks_of(run: Any, sample: str) -> dict[str, Any]:
    trial = next(trial for trial in run.trials() if trial.sample.id == sample)
    return {each.name: (each.kind, each.passed, each.reason) for each in trial.transcript.end_state.checks}


NAMED = """
dataset: {path: questions.yaml}
agents: {solver: {type: checks/solution}}
workspace: {}
verify:
  - {name: mail to a@b.c, file: {path: out.md}}
"""


def test_a_check_with_any_sign_in_its_name_can_be_asked_for(project: Project) -> None:
    project.write("eval.yaml", NAMED)
    project.keval("run", "eval.yaml", "--sample-id", "easy")

    whole, alone = (
        project.keval("show", "latest", "--worst", f"{vendor}mail to a@b.c", "--json").data
        for vendor in ("verify/", "")
    )

    assert ("verify/mail to a@b.c", 1, whole) == (whole["metric"], whole["scored"], alone)


def test_a_check_with_a_comparison_in_its_name_has_gates(project: Project) -> None:
    conditions = "conditions: {without: {}, with: {}}\ngates: [with/verify/a > b > +0]\n"
    project.write("eval.yaml", NAMED.replace("mail to a@b.c", "a > b") + conditions)

    told = project.keval("validate", "eval.yaml")

    assert (0, True) == (told.code, "'low(with/verify/a > b) > +0' is held by an effect that is sure" in told.stderr)


def test_checks_are_scored_in_a_run_and_answered_from_its_recording(project: Project) -> None:
    outcomes, runs = [], []
    for arguments in (["--record"], ["--replay", "latest"]):
        outcomes.append(project.keval("run", "eval.yaml", "--sample-id", "good", "--sample-id", "bad", *arguments))
        runs.append(open_run("latest", project.root / "results"))

    assert [[None, None]] * 2 == [[trial.failure for trial in run.trials()] for run in runs], outcomes
    run, again = runs
    expected = {
        "report": ("file", True, "out.md is as expected"),
        "input": ("unchanged", True, "nothing of it has changed"),
        "counted": ("mcp", True, "the result of count is as expected"),
        "note": ("file", True, "notes/a.txt is as expected"),
    }
    assert expected == checks_of(run, "good") == checks_of(again, "good")
    assert {"report": False, "input": False} == {
        name: passed for name, (_, passed, _) in checks_of(run, "bad").items() if name != "counted"
    }
    trial = next(trial for trial in run.trials() if trial.sample.id == "good")
    assert ["Nothing."] == [call.result for call in trial.transcript.tool_calls]  # type: ignore[union-attr]
    scores = {(score.sample, score.metric): score.score.value for score in run.scores()}
    assert {"verify/report": 1.0, "verify/counted": 1.0, "verify/all": 1.0} == {
        metric: scores["good", metric] for metric in ("verify/report", "verify/counted", "verify/all")
    }


def test_the_oracle_names_what_no_solution_passes_and_what_nothing_passes(project: Project) -> None:
    outcome = project.keval("check", "eval.yaml", "--only", "verify", "--json")

    (examined,) = outcome.data["examined"]
    assert 1 == outcome.code
    assert [
        ("bad", "solution, check 'report': out.md is not there"),
        ("bad", "solution, check 'input': in.txt was changed"),
        ("breaks", "solution: the solution's command ended with exit code 3; its output ends:\nwhy"),
        ("easy", "nothing: all checks pass, though nothing was done"),
    ] == [(defect["sample"], defect["problem"]) for defect in examined["defects"]]
    assert [("solutions", 0.5, 4), ("untouched", 0.75, 4), ("unsolved", 1, 5)] == [
        (figure["name"], figure["value"], figure["n"]) for figure in examined["figures"]
    ]
    assert not (project.root / "results").exists()


def test_the_oracle_passes_a_config_whose_solutions_do_what_is_asked(project: Project) -> None:
    text = (project.root / "questions.yaml").read_text(encoding="utf-8")
    project.write("questions.yaml", text.partition("- {id: bad")[0])

    outcome = project.keval("check", "eval.yaml", "--only", "verify", "--condition", "with")

    assert 0 == outcome.code
    assert "solutions 1.00 n=1" in outcome.stdout


@pytest.mark.parametrize(
    ("questions", "arguments", "expected"),
    [
        ("- {id: a, question: '?'}", (), "no sample has a solution; add `solution:`"),
        ("- {id: a, question: '?', solution: {comand: x}}", (), "questions.yaml:1: 'solution' cannot be read: extra"),
        ("- {id: a, question: '?', solution: {files: {../x: y}}}", (), "'solution.files' must be a path within"),
        ("- {id: a, question: '?', solution: {command: []}}", (), "'solution.command' must name a program"),
        ("- {id: a, question: '?', solution: 5}", (), "'solution' must be a command, or a mapping"),
        ("- {id: a, question: '?', solution: x}", ("--condition", "wit"), "no condition named 'wit'"),
        ("- {id: a, question: '?', solution: x}", (), "questions.yaml:1: no check looks at the solution"),
    ],
)
def test_a_config_that_cannot_be_examined_says_why(
    project: Project, questions: str, arguments: tuple[str, ...], expected: str
) -> None:
    project.write("questions.yaml", questions)
    if "no check" in expected:
        project.write("eval.yaml", "{dataset: {path: questions.yaml}, agents: {echo: {type: testing/echo}}}")

    outcome = project.keval("check", "eval.yaml", "--only", "verify", *arguments)

    assert 2 == outcome.code
    assert expected in outcome.stderr


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        ("file: {path: out.md}", "8:5: the check has no name"),
        ("name: a", "8:5: the check 'a' is of 0 kinds; give it one of command, file"),
        ("name: a, file: x, command: y", "8:5: the check 'a' is of 2 kinds"),
        ("name: a, fil: x", "8:15: no check of the kind 'fil'; did you mean 'file'?"),
        ("name: a, file: {path: /etc/passwd}", "8:28: 'path' must be a path within the workspace"),
        ("name: a, file: {path: x, matches: (}", "8:40: 'matches' must be a regular expression"),
        ("name: a, file: {path: x, contain: y}", "8:31: unknown key 'contain'; did you mean 'contains'?"),
        ("name: a, sqlite: {path: x, query: SELEC, rows: []}", "8:40: 'query' must be one query of SQLite"),
        ("name: a, python: checks.py:f", "8:15: 'target' must name a file that can be read: "),
        ("name: all, command: x", "8:12: verify/all is the score of all checks"),
    ],
)
def test_a_wrong_check_is_told_at_its_place(project: Project, check: str, expected: str) -> None:
    project.write(
        "eval.yaml",
        f"""
        dataset: {{path: questions.yaml}}
        agents: {{solver: {{type: checks/solution}}}}

        metrics: [testing/words]
        workspace: {{}}
        verify:
          - {{name: b, command: "true"}}
          - {{{check}}}
        """,
    )

    outcome = project.keval("validate", "eval.yaml")

    assert 2 == outcome.code
    assert f"eval.yaml:{expected}" in outcome.stderr


def test_a_check_of_a_folder_needs_an_agent_that_works_in_one(project: Project) -> None:
    project.write(
        "eval.yaml",
        """
        dataset: {path: questions.yaml}
        agents: {echo: {type: testing/echo}}
        workspace: {}
        verify: [{name: report, file: out.md}]
        """,
    )

    outcome = project.keval("validate", "eval.yaml")

    assert 2 == outcome.code
    assert (
        "eval.yaml:2:10: the agent 'echo' has no workspace, so that no check can look at what it did" in outcome.stderr
    )
