"""Workspaces, checks and texts in whole runs: what is joined, what is recovered, what is replayed, what is refused."""

from __future__ import annotations

import json
import re
from typing import Any

import attrs
import pytest

from keval import Sample
from keval.config.load import load
from keval.dataset.read import NO_DATASET
from keval.dataset.samples import Samples
from keval.plan.build import make_plan
from keval.plugin import TrialError
from keval.seams import registry
from keval_workspace.tasks.tasks import Tasks
from tests.conftest import Project

AGENT = """
import pathlib, sys, time
question = sys.stdin.read()
rules = pathlib.Path("AGENTS.md")
told = rules.read_text() if rules.exists() else ""
pathlib.Path("log.txt").write_text(question)
if "sum up" in told:
    pathlib.Path("summary.md").write_text("The sum.")
if "slowly" in question:
    time.sleep(30)
if "fails" in question:
    sys.exit("it fails")
print("Done.")
"""
RULES = """# Rules

## Output

Please sum up what you did in summary.md.

## Style

Use short words.

## Names

Name things by what they are.
"""
CONFIG = """
dataset: {path: questions.yaml}
agents:
  mine: {type: command, command: [python, agent.py], reads: {instructions: AGENTS.md}}
contexts:
  rules: {type: instructions, path: RULES.md}
  placebo: {from: rules, text: scrambled}
conditions:
  baseline: {}
  with_rules: {contexts: [rules]}
  with_placebo: {contexts: [placebo]}
  elsewhere: {workspace: {files: {place.txt: elsewhere}}}
workspace: {files: {start.txt: begun, place.txt: here}}
verify:
  - {name: summed up, file: summary.md}
  - {name: start kept, unchanged: start.txt}
"""
QUESTIONS = "".join(f"- {{id: q{number}, question: 'Do it, number {number}.'}}\n" for number in range(6))


@pytest.fixture
def project(project: Project) -> Project:
    (project.root / "RULES.md").write_text(RULES, encoding="utf-8")
    (project.root / "agent.py").write_text(AGENT, encoding="utf-8")
    project.write(eval_yaml=CONFIG)
    (project.root / "questions.yaml").write_text(QUESTIONS, encoding="utf-8")
    return project


def end_of(project: Project, trial: str) -> Any:
    lines = (project.run_directory() / "trials.jsonl").read_text(encoding="utf-8").splitlines()
    return next(found for found in map(json.loads, lines) if found["id"] == trial)["transcript"]["end_state"]


@pytest.mark.slow
def test_the_section_that_matters_is_found_and_the_placebo_does_nothing(project: Project) -> None:
    outcome = project.keval("run", "eval.yaml", "--ablate", "with_rules", "--record", "--json")

    assert 0 == outcome.code, outcome.stderr
    drops = {
        each["left_out"]: next(
            effect["difference"] for effect in each["effects"] if effect["metric"] == "verify/summed up"
        )
        for each in outcome.data["contrasts"]
        if each["kind"] == "ablation"
    }
    assert {"Output": -1.0, "Style": 0.0, "Names": 0.0} == drops
    assert "placebo" in {each["kind"] for each in outcome.data["contrasts"]}
    manifest = json.loads((project.run_directory() / "manifest.json").read_text(encoding="utf-8"))
    assert {"mine": "AGENTS.md"} == manifest["conditions"]["with_placebo"]["texts"]["placebo"]["ways"]


def test_keys_of_a_sample_go_over_those_of_its_condition_and_of_the_evaluation(project: Project) -> None:
    (project.root / "questions.yaml").write_text(
        "- {id: plain, question: Do it.}\n"
        "- id: own\n"
        "  question: Do it.\n"
        "  workspace: {files: {start.txt: other}}\n"
        "  verify:\n"
        "    - {name: start kept, file: {path: start.txt, equals: other}}\n"
        "    - {name: place, file: {path: place.txt, equals: elsewhere}}\n",
        encoding="utf-8",
    )

    outcome = project.keval("run", "eval.yaml", "--condition", "elsewhere", "-q")

    assert 0 == outcome.code, outcome.stderr
    found = {
        sample: {each["name"]: each["passed"] for each in end_of(project, f"mine/elsewhere/{sample}/1")["checks"]}
        for sample in ("plain", "own")
    }
    assert {
        "plain": {"summed up": False, "start kept": True},
        "own": {"summed up": False, "start kept": True, "place": True},
    } == found


@pytest.mark.slow
def test_a_trial_that_fails_keeps_what_it_left_and_is_not_checked(project: Project) -> None:
    project.write(eval_yaml=f"{CONFIG}execution: {{timeout_seconds: 2, retry: {{max_attempts: 1}}}}\n")
    (project.root / "questions.yaml").write_text(
        "- {id: slow, question: Do it slowly.}\n- {id: bad, question: It fails.}\n", encoding="utf-8"
    )

    outcome = project.keval("run", "eval.yaml", "--condition", "baseline", "-q")

    assert 3 == outcome.code
    for sample in ("slow", "bad"):
        end = end_of(project, f"mine/baseline/{sample}/1")
        assert [{"path": "log.txt", "kind": "added"}] == end["changes"]
        assert [] == end.get("checks", [])


@pytest.mark.slow
def test_a_replay_works_again_in_fresh_folders_and_finds_the_same(project: Project) -> None:
    recorded = project.keval("run", "eval.yaml", "--record", "-q")
    first = project.run_directory()

    replayed = project.keval("run", "--replay", str(first), "-q")
    told = project.keval("compare", "--exact", first.name, "latest")

    assert (0, 0, 0) == (recorded.code, replayed.code, told.code), replayed.stderr + told.stdout


def test_a_run_does_not_go_on_with_another_text(project: Project) -> None:
    project.keval("run", "eval.yaml", "--limit", "2", "-q")
    rules = project.root / "RULES.md"
    rules.write_text(rules.read_text(encoding="utf-8").replace("short", "long"), encoding="utf-8")

    outcome = project.keval("resume", "latest")

    assert (2, True) == (outcome.code, "rules" in outcome.stderr), outcome.stderr


def test_a_check_that_is_not_there_on_a_worker_is_unscored(project: Project) -> None:
    own = {"name": "total", "python": "checks.py:total"}
    wanted = [Sample("a", "?", verify=(own,)), Sample("b", "?", workspace={"copy": 3})]
    dataset = attrs.evolve(NO_DATASET, samples=Samples.of(wanted), checks=("total",), workspaces=True)

    tasks = make_plan(load(project.root / "eval.yaml"), dataset, samples_checked=True).tasks

    assert isinstance(tasks, Tasks)
    checks, missing = tasks.checks_of(wanted[0])
    assert ["summed up", "start kept"] == [each.name for each in checks]
    (result,) = missing
    assert ("total", "python", None) == (result.name, result.kind, result.passed)
    assert "could not run: 'target' must name a file that can be read" in result.reason
    with pytest.raises(TrialError, match="the sample's workspace: expected a path, got 3"):
        tasks.provider("baseline", wanted[1], None)


def test_a_sample_reads_no_variable_of_the_environment(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "a-canary")
    own = {"name": "key", "file": {"path": "start.txt", "equals": "${A_KEY}"}}
    unset = {"name": "unset", "command": "echo ${NOBODY_SET_THIS}"}
    sample = Sample("a", "?", workspace={"files": {"key.txt": "${A_KEY}"}}, verify=(own, unset))
    dataset = attrs.evolve(NO_DATASET, samples=Samples.of([sample]), checks=("key", "unset"), workspaces=True)

    tasks = make_plan(load(project.root / "eval.yaml"), dataset, samples_checked=False).tasks

    assert isinstance(tasks, Tasks)
    checks, missing = tasks.checks_of(sample)
    provider: Any = tasks.provider("baseline", sample, None)
    options: dict[str, Any] = {each.name: each.check for each in checks}
    assert ((), "${A_KEY}") == (missing, provider.files["key.txt"])
    assert ("${A_KEY}", "echo ${NOBODY_SET_THIS}") == (options["key"].equals, options["unset"].run)


SERVER = """
import os
from mcp.server import MCPServer
server = MCPServer("notes")

@server.tool()
def write_note(text: str) -> str:
    "Write a note"
    open("note.txt", "a").write("noted")
    return os.getcwd()

server.run()
"""


@pytest.mark.slow
@pytest.mark.parametrize("workspace", ["workspace: {files: {start.txt: begun}}", ""], ids=["asked for", "implied"])
def test_a_server_works_in_the_workspace_of_its_trial(project: Project, workspace: str) -> None:
    (project.root / "server.py").write_text(SERVER, encoding="utf-8")
    (project.root / "questions.yaml").write_text(
        "- {id: a, question: 'Please write the note \"one\".'}\n"
        "- {id: b, question: 'Please write the note \"two\".'}\n",
        encoding="utf-8",
    )
    project.write(
        eval_yaml="""
dataset: {path: questions.yaml}
agents: {openai: {model: simulated/any}}
contexts:
  notes: {type: stdio, command: python, args: [SERVER], cwd: "{workspace}"}
  rules: {type: instructions, path: RULES.md}
conditions: {with_notes: {contexts: [notes, rules]}}
WORKSPACE
verify: [{name: noted once, file: {path: note.txt, equals: noted}}]
""".replace("SERVER", str(project.root / "server.py")).replace("WORKSPACE", workspace)
    )

    outcome = project.keval("run", "eval.yaml", "--json")

    assert 0 == outcome.code, outcome.stderr
    ends = [end_of(project, f"openai/with_notes/{sample}/1") for sample in ("a", "b")]
    assert 2 * [[{"path": "note.txt", "kind": "added"}]] == [end["changes"] for end in ends]
    assert [True, True] == [end["checks"][0]["passed"] for end in ends]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            "agents: {openai: {model: simulated/any}}",
            "the agent 'openai' has no workspace, so that no check can look at",
        ),
        ("conditions: {a: {contexts: [rulez]}}", "no context named 'rulez'; did you mean 'rules'?"),
        ("workspace: {copy: nowhere}", "eval.yaml:12:19: "),
        ("workspace: {copies: start}", "unknown key 'copies'"),
        ("verify: [{file: summary.md}]", "the check has no name; add `name:`"),
        ("verify: [{name: all, file: summary.md}]", "verify/all is the score of all checks; rename this one"),
        ("verify: [{name: a, fill: summary.md}]", "no check of the kind 'fill'; did you mean 'file'?"),
        ("verify: [{name: a, file: b, sqlite: c}]", "the check 'a' is of 2 kinds"),
        ("verify: [{name: a, file: b}, {name: a, file: c}]", "another check is named 'a'; rename one"),
        ("conditions: {a: {contexts: [rules, placebo]}}", "'rules' and 'placebo'"),
    ],
)
def test_what_cannot_be_run_is_told_at_its_place(project: Project, change: str, problem: str) -> None:
    section = change.partition(":")[0]
    sections = re.split(r"^(?=\w)", CONFIG, flags=re.MULTILINE)
    project.write(eval_yaml="".join(f"{change}\n" if each.startswith(f"{section}:") else each for each in sections))

    outcome = project.keval("validate", "eval.yaml")

    assert (2, True) == (outcome.code, problem in outcome.stderr), outcome.stderr


def test_an_agent_in_process_is_said_to_be_in_no_sandbox(project: Project) -> None:
    project.write(
        eval_yaml="dataset: {path: questions.yaml}\nagents: {echo: {type: testing/echo}}\n"
        "sandbox: {command: [env]}\nmetrics: [testing/words]\n"
    )

    outcome = project.keval("validate", "eval.yaml")

    assert "eval.yaml:2:10: 'echo' runs in keval's own process, where no sandbox shuts it in" in outcome.stderr


@pytest.mark.parametrize(
    "asked",
    [
        "verify: [{name: summed up, file: summary.md}]",
        "sandbox: bubblewrap",
        "conditions: {baseline: {workspace: {}}}",
        "contexts: {rules: {type: instructions, path: RULES.md}}\nconditions: {ruled: {contexts: [rules]}}",
    ],
)
def test_without_the_package_an_error_names_it_where_tasks_are_asked_for(
    project: Project, monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    head = "dataset: {path: questions.yaml}\nagents:\n  mine: {type: command, command: [python, agent.py]}\n"
    project.write(eval_yaml=f"{head}metrics: [basic/latency]\n{asked}\n")
    found = registry.components
    theirs = ("keval.task_makers", "keval.workspaces")
    monkeypatch.setattr(registry, "components", lambda group: () if group in theirs else found(group))

    outcome = project.keval("run", "eval.yaml")

    told = "the maker of workspaces and checks 'tasks' comes with keval-workspace, which is not installed: `"
    assert (2, 1) == (outcome.code, outcome.stderr.count("keval-workspace, which"))
    assert "eval.yaml:5:" in outcome.stderr
    assert told in outcome.stderr
