"""Coding agents in a workspace: real programs with their own tools, instruction files and skills.

Only the model is simulated: it does what the script of each example, or of this file, says.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.coding_agents import RECIPES, program
from tests.conftest import Project

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAMS = {
    "codex": ("AGENTS.md", ".agents/skills"),
    "gemini": ("GEMINI.md", ".gemini/skills"),
    "opencode": ("AGENTS.md", ".agents/skills"),
    "claude-code": ("CLAUDE.md", ".claude/skills"),
}
"""What each finds in its folder."""

SCRIPT = {
    "tasks": [
        {
            "words": ["changelog"],
            "steps": [
                {"write": {"path": "docs/new.md", "text": "New\n"}},
                {"append": {"path": "CHANGELOG.md", "text": "- Added.\n"}},
                {"replace": {"path": "src/a.py", "old": "VALUE = 1", "new": "VALUE = 2"}},
                {"run": "touch instructed", "told": "The rule of this folder", "chance": 1},
                {"run": "touch skilled", "told": "The body of the skill", "chance": 1},
                {"run": "touch prompted", "told": "The system prompt", "chance": 1},
                {"say": "I have done it."},
            ],
        }
    ]
}


def _written(project: Project, name: str, agent: dict[str, Any], **condition: Any) -> None:
    skill = project.root / "skills" / "logs"
    skill.mkdir(parents=True)
    text = "---\nname: logs\ndescription: Use it for the changelog.\n---\n\nThe body of the skill.\n"
    (skill / "SKILL.md").write_text(text, encoding="utf-8")
    (project.root / "rules.md").write_text("The rule of this folder.\n", encoding="utf-8")
    files = {"CHANGELOG.md": "# Changes\n", "src/a.py": "VALUE = 1\n", "README.md": "Read me.\n"}
    config = {
        "dataset": {"path": "q.jsonl"},
        "agents": {name: {**agent, "model": "simulated/coder"}},
        "middleware": [{"simulated/coder": {"path": "script.yaml"}}],
        "contexts": {
            "rules": {"type": "instructions", "path": "rules.md"},
            "logs": {"type": "skill", "path": "skills/logs"},
        },
        "conditions": {"with_both": {"contexts": ["rules", "logs"], **condition}},
        "workspace": {"files": files},
        "verify": [{"name": "read me", "unchanged": "README.md"}],
        "metrics": [],
    }
    project.write(q_jsonl='{"id": "q1", "question": "Add an entry to the changelog."}\n')
    for path, content in {"eval.yaml": config, "script.yaml": SCRIPT}.items():
        (project.root / path).write_text(yaml.safe_dump(content), encoding="utf-8")


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where trials make their folders: in one that has instruction files, which are not theirs."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("prompt", [None, "The system prompt of the condition."], ids=["own prompt", "prompt"])
def test_a_real_program_finds_its_texts_and_edits_files(
    name: str, prompt: str | None, project: Project, temporary: Path
) -> None:
    agent, path = program(name)
    _written(project, name, agent, **({"system_prompt": prompt} if prompt else {}))

    outcome = project.keval("run", "eval.yaml", env={"PATH": path})

    assert 0 == outcome.code, outcome.stderr
    (trial,) = project.lines("trials.jsonl")
    transcript = trial["transcript"]
    given = [(text["name"], text["way"], text["read"], text["by"] is None) for text in transcript["texts"]]
    instructions, skills = PROGRAMS[name]
    assert [("rules", instructions, True, True), ("logs", skills, True, False)] == given
    told = {"instructed": "added", "skilled": "added", **({"prompted": "added"} if prompt else {})}
    edited = {"CHANGELOG.md": "changed", "docs/new.md": "added", "src/a.py": "changed"}
    assert {**told, **edited} == {each["path"]: each["kind"] for each in transcript["end_state"]["changes"]}
    assert "-VALUE = 1\n+VALUE = 2\n" in transcript["end_state"]["diff"]
    assert "I have done it." == transcript["messages"][-1]["text"]
    own = [call for call in transcript["tool_calls"] if call["own"]]
    assert name == "codex" or len(own) >= 6  # `codex exec` is no adapter that tells of them
    assert [] == list(temporary.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["codex", "gemini", "claude-code"])
def test_a_skill_that_a_misleading_description_keeps_from_being_read_is_found(name: str, project: Project) -> None:
    agent, path = program(name)
    _written(project, name, agent)
    for skill, description in (("logs", "Keeps release notes."), ("diary", "Use it for the changelog.")):
        text = f"---\nname: {skill}\ndescription: {description}\n---\n\nWhat {skill} has to say of it.\n"
        (project.root / "skills" / skill).mkdir(exist_ok=True)
        (project.root / "skills" / skill / "SKILL.md").write_text(text, encoding="utf-8")
    config = yaml.safe_load((project.root / "eval.yaml").read_text(encoding="utf-8"))
    config["contexts"]["logs"]["path"] = "skills"
    script = {"tasks": [*SCRIPT["tasks"], {"words": ["colours"], "steps": [{"say": "Red."}]}]}
    for file, content in {"eval.yaml": config, "script.yaml": script}.items():
        (project.root / file).write_text(yaml.safe_dump(content), encoding="utf-8")
    asked = [
        {"id": "q1", "question": "Add an entry to the changelog.", "expect": {"reads": "logs", "not_reads": "diary"}},
        {"id": "q2", "question": "Name the colours.", "expect": {"not_reads": ["logs", "diary"]}},
    ]
    project.write(q_jsonl="".join(json.dumps(each) + "\n" for each in asked))

    outcome = project.keval("run", "eval.yaml", env={"PATH": path})

    assert 1 == outcome.code, outcome.stderr
    logs, diary, nothing = project.read("summary.json")["routing"]
    assert ("logs", 0.0, None, {"diary": 1}) == (
        *(logs["name"], logs["recall"]["rate"], logs["precision"], logs["chosen"]),
    )
    assert ("diary", None, 0.0) == (diary["name"], diary["recall"], diary["precision"]["rate"])
    assert ("", {"": 1}, 0) == (nothing["name"], nothing["chosen"], nothing["unknown"])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["codex", "gemini", "claude-code"])
def test_instruction_files_above_the_workspace_are_not_read(name: str, project: Project, temporary: Path) -> None:
    agent, path = program(name)
    _written(project, name, agent)
    for file in ("AGENTS.md", "CLAUDE.md", "CLAUDE.local.md", "GEMINI.md"):
        (temporary / file).write_text("The system prompt of somebody else.\n", encoding="utf-8")

    outcome = project.keval("run", "eval.yaml", env={"PATH": path})

    assert 0 == outcome.code, outcome.stderr
    (trial,) = project.lines("trials.jsonl")
    assert "prompted" not in [each["path"] for each in trial["transcript"]["end_state"]["changes"]]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["codex", "claude-code"])
def test_a_recorded_trial_in_a_workspace_is_replayed_equally(name: str, project: Project) -> None:
    agent, path = program(name)
    _written(project, name, agent)
    env = {"PATH": path}

    recorded = project.keval("run", "eval.yaml", "--record", "-o", "recorded", env=env)
    (run,) = project.root.glob("recorded/*/*")
    replayed = project.keval("run", "eval.yaml", "--replay", str(run), "-o", "replayed", env=env)
    (again,) = project.root.glob("replayed/*/*")
    difference = project.keval("compare", "--exact", str(run), str(again))

    assert (0, 0, 0) == (recorded.code, replayed.code, difference.code), replayed.stderr + difference.stdout


@pytest.mark.parametrize("example", ["agents-md", "skills"])
def test_the_examples_agents_are_the_recipes_of_the_documentation(example: str) -> None:
    config = yaml.safe_load((EXAMPLES / example / f"{example}.yaml").read_text(encoding="utf-8"))
    agents: dict[str, dict[str, Any]] = {name: each for name, each in config["agents"].items() if name != "small"}

    assert {"codex", "opencode"} == agents.keys()
    assert agents == {name: {**RECIPES[name], "model": agents[name]["model"]} for name in agents}


@pytest.mark.slow
def test_the_sections_that_matter_are_found(project: Project, temporary: Path) -> None:
    run = project.run(EXAMPLES / "agents-md" / "agents-md.yaml", "--agent", "small")

    assert 0 == run.code, run.stderr
    found = _worse(project, "with_agents_md", "verify/all")
    assert {"with_agents_md without Changelog", "with_agents_md without Registry", "placebo", "baseline"} == found
    assert (
        "this run cannot tell what leaving out these sections changes: About, Style, Reviews"
        in project.keval("report", str(project.run_directory())).stdout
    )
    assert [] == list(temporary.iterdir())


@pytest.mark.slow
def test_the_skill_that_helps_the_one_that_misleads_and_the_one_that_is_not_read_are_found(project: Project) -> None:
    run = project.run(EXAMPLES / "skills" / "skills.yaml", "--agent", "small")

    assert 0 == run.code, run.stderr
    assert {"with_quick_notes", "with_all"} == _worse(project, "baseline", "verify/changes kept")
    assert "placebo" in _worse(project, "with_release_notes", "verify/upgrading")
    read = {
        (trial["condition"], text["name"]): text["read"]
        for trial in project.lines("trials.jsonl")
        for text in trial["transcript"].get("texts", ())
    }
    assert {"diagrams"} == {name for (_, name), was in read.items() if not was}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["codex", "opencode", "claude-code"])
def test_a_planted_section_and_skill_are_heeded_by_the_model_of_a_real_program(name: str, project: Project) -> None:
    _, path = program(name)
    arms = ["baseline", "with_agents_md"]

    run = project.run(
        EXAMPLES / "agents-md" / "agents-md.yaml",
        *("--agent", name, "--limit", "2", "--sample-id", "pints", "--sample-id", "ounces"),
        *(flag for arm in arms for flag in ("--condition", arm)),
        env={"PATH": path},
    )

    assert 0 == run.code, run.stderr
    passed = dict.fromkeys(arms, 0)
    for score in project.lines("scores.jsonl"):
        if score["metric"] == "verify/changelog" and score["condition"] in passed:
            passed[score["condition"]] += score["value"]
    assert passed["baseline"] == 0
    assert passed["with_agents_md"] >= 3


def _worse(project: Project, against: str, metric: str) -> set[str]:
    """Return the conditions that are worse than another one by a metric."""
    report = json.loads(project.keval("report", str(project.run_directory()), "--json").stdout)
    verdicts = {
        (each["condition"], each["against"]["condition"]): each["verdict"]
        for each in [
            *report["effects"],
            *(effect for contrast in report["contrasts"] for effect in contrast["effects"]),
        ]
        if each["metric"] == metric
    }
    worse = {condition for (condition, other), verdict in verdicts.items() if (other, verdict) == (against, "worse")}
    return worse | {
        other for (condition, other), verdict in verdicts.items() if (condition, verdict) == (against, "better")
    }
