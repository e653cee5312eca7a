"""Files `evals.json` in the manner of three authors: agentskills.io, skill-creator, and one with typed assertions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from skills_ref import validate

from keval.config.load import load
from keval.plan.build import make_plan
from tests.conftest import Project

pytestmark = pytest.mark.usefixtures("simulated_here")

SKILL = "---\nname: csv-report\ndescription: Makes charts and reports of CSV files.\n---\n# CSV\nUse bars.\n"
GUIDE = {
    "skill_name": "csv-report",
    "evals": [
        {
            "id": 1,
            "prompt": "Make a chart of data/sales.csv 📊",
            "expected_output": "A bar chart with the three months",
            "files": [{"path": "evals/files/sales.csv", "purpose": "what was sold"}],
            "assertions": ["The chart has three bars", "The axis is labelled"],
        },
        {"id": 2, "prompt": "Say how many months there are.", "expected_output": "Three months", "files": []},
    ],
}
CREATOR = {
    "skill_name": "csv-report",
    "evals": [{"id": 7, "prompt": "Sum it up.", "files": ["files/sales.csv"], "expectations": ["It names the total"]}],
}
ASKED = {"id": 1, "prompt": "Sum it up.", "expectations": ["It does"]}
TYPED = {
    "version": "1.2",
    "runner": "docker",
    "evals": [
        {
            "id": "total",
            "prompt": "What is the total?",
            "assertions": [
                {"type": "contains", "value": "6"},
                {"type": "file-exists", "path": "report.md"},
                {"type": "llm", "text": "It is short"},
                {"type": "script", "command": "check.sh"},
                {"type": "ordered_content", "text": "It adds first", "patterns": ["add", "sum"]},
            ],
            "timeout": 30,
        },
        {"id": "again", "prompt": "Once more?", "assertions": [{"type": "regex", "pattern": "[0-9]"}], "timeout": 9},
    ],
}


@pytest.fixture
def evals(project: Project, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of the file in the folder of a skill."""
    monkeypatch.chdir(project.root)
    files = project.root / "csv-report" / "evals" / "files"
    files.mkdir(parents=True)
    (files / "sales.csv").write_text("month,sold\nJan,3\n", encoding="utf-8")
    (files.parents[1] / "SKILL.md").write_text(SKILL, encoding="utf-8")
    return Path("csv-report/evals/evals.json")


def written(path: Path, data: Any) -> str:
    path.write_text(json.dumps(data, indent="\t"), encoding="utf-8")
    return str(path)


def test_the_guides_file_is_run_without_and_with_its_skill(project: Project, evals: Path) -> None:
    outcome = project.keval("run", written(evals, GUIDE), "--agent", "scripted", "-o", "results")

    assert 0 == outcome.code, outcome.stderr
    assert "evals.json:1:1: agent and models are gadk and simulated/model" in outcome.stderr
    assert "no equivalent" not in outcome.stderr
    assert "csv-report" == project.read("manifest.json")["evaluation"]
    trials = [(each["condition"], each["sample"]) for each in project.lines("trials.jsonl")]
    assert [("with_skill", "1"), ("with_skill", "2"), ("without_skill", "1"), ("without_skill", "2")] == sorted(trials)
    chart, months = project.lines("samples.jsonl")
    assert ["The chart has three bars", "The axis is labelled"] == chart["metadata"]["expectations"]
    assert ["data/sales.csv"] == [*chart["workspace"]["files"]]
    assert ["Three months"] == months["metadata"]["expectations"]
    scores = project.lines("scores.jsonl")
    assert {"expectations"} == {each["metric"] for each in scores}
    assert all(each["value"] in (0.0, 0.5, 1.0) for each in scores)


def test_agents_do_not_get_the_evals_of_a_skill(project: Project, evals: Path) -> None:
    from keval_skills.tree import Tree

    written(evals, GUIDE)

    assert ("SKILL.md",) == Tree.read(evals.parents[1]).files


def test_skill_creators_file_is_valid_and_written_out(project: Project, evals: Path) -> None:
    written(evals, CREATOR)

    outcome = project.keval("init", "mine", "--from", str(evals), "-m", "openai/gpt-5.5")
    again = project.keval("init", "mine", "--from", str(evals))
    refused = project.keval("init", "other", "--from", str(evals), "--only", "it")

    assert (0, "wrote mine/eval.yaml\nmine/eval.yaml: valid; 2 trials (1 sample), 2 judgements by judge\n") == (
        outcome.code,
        outcome.stdout,
    ), outcome.stderr
    assert {
        "name": "csv-report",
        "dataset": {
            "path": "../csv-report/evals/evals.json",
            "question_key": "prompt",
            "answer_key": "expected_output",
        },
        "agents": {"gadk": {"model": "openai/gpt-5.5"}},
        "contexts": {"csv-report": {"type": "skill", "path": "../csv-report"}},
        "conditions": {"without_skill": {}, "with_skill": {"contexts": ["csv-report"]}},
        "judges": {"judge": {"model": "openai/gpt-5.5"}},
        "rubrics": ["expectations"],
    } == yaml.safe_load((project.root / "mine/eval.yaml").read_text(encoding="utf-8"))
    assert (2, True) == (again.code, "exist" in again.stderr)
    assert (2, True) == (refused.code, "--only: a file of another tool says all but the model" in refused.stderr)


def test_what_needs_no_judge_is_checked_and_what_has_no_equivalent_is_told(project: Project, evals: Path) -> None:
    outcome = project.keval("validate", written(evals, TYPED))

    assert (0, True) == (outcome.code, "valid; 4 trials (2 samples), 4 judgements" in outcome.stdout), outcome.stderr
    table = outcome.stderr.partition("no equivalent in keval:\n")[2]
    lines = evals.read_text(encoding="utf-8").splitlines()

    def told(word: str, column: int, message: str, above: int = 0) -> str:
        line = next(number for number, line in enumerate(lines, start=1) if word in line)
        return f"csv-report/evals/evals.json:{line - above}:{column} {message}"

    assert {
        told("runner", 2, "the key 'runner'"),
        told("timeout", 4, "the key 'timeout', kept as metadata of the sample"),
        told("script", 5, "an assertion of the type 'script', which is not checked", above=1),
        told("ordered", 5, "'patterns' of an assertion of the type 'ordered_content', which is not checked", above=1),
    } == {" ".join(line.split()) for line in table.splitlines()}


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        (["gone.csv"], "the skill has no file 'gone.csv'; 'files' are relative to the folder of SKILL.md"),
        (["../eval.yaml"], "the skill has no file '../eval.yaml'; 'files' are relative to the folder of SKILL.md"),
        (["/etc/hostname"], "the skill has no file '/etc/hostname'"),
        ("sales.csv", "'files' is a list of paths, relative to the skill's folder, got 'sales.csv'"),
        (["evals/files/sales.csv", "files/sales.csv"], "two of 'files' have the same name"),
    ],
)
def test_wrong_files_are_told_at_their_case(project: Project, evals: Path, files: Any, problem: str) -> None:
    case = {"id": 1, "prompt": "Sum it up.", "files": files, "expectations": ["It does"]}
    (project.root / "eval.yaml").touch()

    outcome = project.keval("validate", written(evals, {"evals": [case]}))

    assert (2, True) == (outcome.code, f"evals.json:3: {problem}" in outcome.stderr), outcome.stderr


def test_without_a_skill_there_is_nothing_to_compare(project: Project, evals: Path) -> None:
    (evals.parents[1] / "SKILL.md").unlink()

    outcome = project.keval("validate", written(evals, GUIDE))

    told = "error: csv-report/evals/evals.json:1:1: there is no SKILL.md beside evals.json or above it"
    assert (2, 1, True) == (outcome.code, len(outcome.stderr.splitlines()), outcome.stderr.startswith(told))


def test_cases_without_anything_to_check_are_refused(project: Project, evals: Path) -> None:
    case = {"id": 1, "prompt": "Sum it up.", "scorers": [{"type": "regex", "pattern": "6"}]}

    outcome = project.keval("validate", written(evals, {"evals": [case]}))

    told = "evals.json:2:11: no case has what an answer is checked by: assertions, expectations or expected_output"
    assert (2, True) == (outcome.code, told in outcome.stderr), outcome.stderr


@pytest.mark.parametrize("data", [GUIDE, CREATOR, TYPED])
def test_what_is_written_out_is_the_same_evaluation(project: Project, evals: Path, data: Any) -> None:
    written(evals, data)

    outcome = project.keval("init", "mine", "--from", str(evals))

    assert 0 == outcome.code, outcome.stderr
    theirs, ours = (make_plan(load(path)) for path in (evals, Path("mine/eval.yaml")))
    assert [*theirs.samples] == [*ours.samples]
    assert [*theirs.trials()] == [*ours.trials()]


GOOD = {
    "plain": "name: plain\ndescription: Fills forms.",
    "tools-2": "name: tools-2\ndescription: d\nlicense: MIT\nallowed-tools: Read Bash(git:*)",
    "größe": "name: größe\ndescription: Measures.\ncompatibility: Needs git",
}
BAD = {
    "Capital": "name: Capital\ndescription: d",
    "double--dash": "name: double--dash\ndescription: d",
    "nameless": "description: d",
    "vague": "name: vague\ndescription: ''",
    "torn": "name: torn\ndescription: Use when: torn",
}


@pytest.mark.parametrize("name", [*GOOD, *BAD])
def test_skills_are_valid_if_skills_ref_says_so(project: Project, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(project.root)
    folder = project.root / name
    (folder / "evals").mkdir(parents=True)
    (folder / "SKILL.md").write_text(f"---\n{ {**GOOD, **BAD}[name] }\n---\nUse bars.\n", encoding="utf-8")

    outcome = project.keval("validate", written(Path(name, "evals", "evals.json"), CREATOR | {"evals": [ASKED]}))

    assert (name in GOOD, name in GOOD) == (outcome.code == 0, validate(folder) == []), outcome.stderr
