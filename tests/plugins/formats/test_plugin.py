"""Plugins of three authors: of Claude Code with evals, of Agent Plugins 1.0, and with all in the manifest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import Project

pytestmark = pytest.mark.usefixtures("simulated_here")

SKILL = "---\nname: {name}\ndescription: Writes {name}.\n---\nUse it.\n"
COMMIT = """---
max_turns: 10
runs: 2
tags: [smoke]
---

Write me a commit message for a renamed function.
"""
FIRED = r"""---
type: tool_used
tool: Skill
input_match: '"skill"\s*:\s*"(?:[\w-]+:)?commits"'
---
"""
WHOLE = {
    "schema_version": "1.1",
    "name": "changelog",
    "runs": 2,
    "context": {"scaffold_script": "seed.sh"},
    "execution": {"prompt": "Write the changelog.", "timeout_seconds": 60},
    "graders": [
        {"name": "told", "type": "regex", "pattern": "Added|Fixed", "flags": "i"},
        {"name": "no excuse", "type": "regex", "pattern": "sorry", "match": "not_contains"},
        {"name": "file", "type": "regex", "pattern": "1\\.0", "target": {"source": "file", "path": "CHANGES.md"}},
        {"name": "made", "type": "file_exists", "path": "*.md"},
        {"name": "listed", "type": "tool_used", "tool": "mcp__plugin_git_log__list_commits"},
        {"name": "no shell", "type": "tool_used", "tool": "Bash", "min": 0, "max": 0},
        {"name": "order", "type": "tool_order", "before": "Read", "after": "Write"},
        {"name": "heavy", "type": "regex", "pattern": "x", "weight": 2},
        {"name": "many", "type": "regex", "pattern": "x", "match": "count:3"},
    ],
}


def tree(folder: Path, files: dict[str, Any]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / name).write_text(text, encoding="utf-8")


def table(stderr: str) -> list[str]:
    told = stderr.partition("no equivalent in keval:\n")[2].splitlines()
    return [line.partition("plugin.json:")[2].partition(" ")[2].strip() for line in told if "plugin.json:" in line]


@pytest.fixture
def here(project: Project, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(project.root)
    return project.root


def claude_code(root: Path) -> None:
    tree(
        root,
        {
            "git/.claude-plugin/plugin.json": {"name": "git", "version": "1.0.0", "author": {"name": "Ann"}},
            "git/skills/commits/SKILL.md": SKILL.format(name="commits"),
            "git/skills/logs/SKILL.md": SKILL.format(name="logs"),
            "git/commands/go.md": "Go.",
            "git/evals/commit/prompt.md": COMMIT,
            "git/evals/commit/graders/criteria.md": "---\ntype: llm\n---\n\nPASS if it names the function.\n",
            "git/evals/commit/graders/fired.md": FIRED,
            "git/evals/group/changelog/case.yaml": WHOLE,
            "git/evals/group/changelog/seed.sh": "echo '1.0' > CHANGES.md\n",
            "git/evals/results/2026/report.html": "",
        },
    )


def test_cases_of_a_plugin_are_run_and_written_out_without_it_with_it_and_without_each_skill(
    project: Project, here: Path
) -> None:
    claude_code(here)

    manifest = "git/.claude-plugin/plugin.json"
    written = project.keval("init", "mine", "--from", manifest)
    outcome = project.keval("run", manifest, "--agent", "scripted", "--condition", "baseline", "-o", "results")

    assert (0, 0) == (written.code, outcome.code), written.stderr + outcome.stderr
    assert "mine/eval.yaml: valid; 16 trials (2 samples), 16 judgements by judge" in written.stdout
    config = yaml.safe_load((here / "mine/eval.yaml").read_text(encoding="utf-8"))
    assert ["baseline", "git", "git without commits", "git without logs"] == [*config["conditions"]]
    assert {("commit", 1), ("commit", 2), ("changelog", 1), ("changelog", 2)} == {
        (each["sample"], each["repetition"]) for each in project.lines("trials.jsonl")
    }
    samples = {each["id"]: each for each in project.lines("samples.jsonl")}
    assert ["PASS if it names the function."] == samples["commit"]["metadata"]["expectations"]
    assert [["commits"], ["git"]] == [samples["commit"]["expect"][0][key] for key in ("reads", "conditions")]
    assert [
        {"type": "regex", "value": "(?i:Added|Fixed)"},
        {"type": "not-regex", "value": "sorry"},
        {"type": "regex", "value": "x"},
    ] == samples["changelog"]["metadata"]["asserts"]["assert"]
    assert [["list_commits"], ["Bash"]] == [samples["changelog"]["expect"][0][key] for key in ("calls", "not_calls")]
    scores = {(each["sample"], each["metric"]): each["value"] for each in project.lines("scores.jsonl")}
    assert (1.0, 1.0) == tuple(scores["changelog", f"verify/{each}"] for each in ("CHANGES.md (1)", "*.md (2)"))
    assert {
        "commands/, which only Claude Code gets, by `{type: plugin, path: …}`",
        "commit: the key 'max_turns'",
        "group/changelog: the grader 'heavy': the key 'weight'",
        "group/changelog: the grader 'order' of the type 'tool_order', which is not checked as it is written",
        "group/changelog: the grader 'many' of the type 'regex', which is not checked as it is written",
        "timeout_seconds of its own for each case; it is 300 for all",
    } == set(table(outcome.stderr))


def test_a_run_is_not_resumed_with_other_cases_of_a_plugin(project: Project, here: Path) -> None:
    claude_code(here)
    for each in (here / "git/skills").rglob("SKILL.md"):  # what has no context is run quickly
        each.unlink()
    project.keval("run", "git/.claude-plugin/plugin.json", "--agent", "scripted", "-o", "results", "--limit", "1")
    criteria = here / "git/evals/commit/graders/criteria.md"
    criteria.write_text(criteria.read_text(encoding="utf-8").replace("function", "module"), encoding="utf-8")

    outcome = project.keval("resume", str(project.run_directory()))

    assert (2, True) == (outcome.code, "dataset" in outcome.stderr), outcome.stderr


AGENT_PLUGIN = {
    "bare/plugin.json": {
        "$schema": "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json",
        "name": "bare.one",
        "extensions": {"com.example": {}},
    },
    "bare/skills/letters/SKILL.md": SKILL.format(name="letters"),
    "bare/data/rules": "",
    "bare/mcp.json": {
        "$schema": "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json",
        "mcpServers": {
            "checker": {"type": "stdio", "command": "./bin/check", "args": ["${PLUGIN_ROOT}/rules"], "cwd": "./data"},
            "web": {"type": "streamable-http", "url": "https://web.example/mcp", "headers": {"X-Tenant": "a"}},
            "odd": {"type": "ws", "url": "ws://odd.example"},
        },
    },
}
IN_MANIFEST = {
    "all/.claude-plugin/plugin.json": {
        "name": "all",
        "skills": "./more",
        "hooks": "./hooks.json",
        "mcpServers": {"clock": {"command": "uvx", "args": ["mcp-server-time"], "timeout": 9}},
    },
    "all/more/letters/SKILL.md": SKILL.format(name="letters"),
}


def test_agent_plugins_get_questions_where_they_are_written_out(project: Project, here: Path) -> None:
    tree(here, {**AGENT_PLUGIN, "q.jsonl": '{"q": "Why?", "a": "So."}\n'})

    refused = project.keval("validate", "bare/plugin.json")
    outcome = project.keval("init", "a", "--from", "bare/plugin.json")
    asked = ("--questions", "q.jsonl", "--question-key", "q", "--answer-key", "a")
    mine = project.keval("init", "b", "--from", "bare/plugin.json", *asked, "-m", "openai/gpt-5.5")

    assert (2, True) == (refused.code, "`keval init DIR --from bare/plugin.json`" in refused.stderr), refused.stderr
    assert (0, 0) == (outcome.code, mine.code), outcome.stderr + mine.stderr
    assert "the key 'extensions'" in table(mine.stderr)
    assert "mcp.json: the server 'odd', as it has no command or URL, or is of another type" in table(mine.stderr)
    config = yaml.safe_load((here / "a/eval.yaml").read_text(encoding="utf-8"))
    assert {
        "letters": {"type": "skill", "path": "../bare/skills/letters"},
        "checker": {"type": "stdio", "command": "./../bin/check", "args": ["../rules"], "cwd": "../bare/data"},
        "web": {"type": "http", "url": "https://web.example/mcp", "headers": {"X-Tenant": "a"}},
    } == config["contexts"]
    assert ["baseline", "bare.one", *(f"bare.one without {each}" for each in config["contexts"])] == [
        *config["conditions"]
    ]
    assert {"contexts": ["letters", "web"]} == config["conditions"]["bare.one without checker"]
    assert 3 == len((here / "a/questions.jsonl").read_text(encoding="utf-8").splitlines())
    config = yaml.safe_load((here / "b/eval.yaml").read_text(encoding="utf-8"))
    assert {"path": "../q.jsonl", "question_key": "q", "answer_key": "a"} == config["dataset"]
    assert "b/eval.yaml: valid; 5 trials (1 sample)" in mine.stdout


def test_skills_and_servers_of_a_manifest_are_read(project: Project, here: Path) -> None:
    tree(here, IN_MANIFEST)

    outcome = project.keval("init", "a", "--from", "all/.claude-plugin/plugin.json")

    assert 0 == outcome.code, outcome.stderr
    assert {
        "letters": {"type": "skill", "path": "../all/more/letters"},
        "clock": {"type": "stdio", "command": "uvx", "args": ["mcp-server-time"], "cwd": "../all"},
    } == yaml.safe_load((here / "a/eval.yaml").read_text(encoding="utf-8"))["contexts"]
    assert ["the key 'hooks'", "mcpServers: the key 'timeout'"] == table(outcome.stderr)


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        (
            ".mcp.json",
            {"mcpServers": {"a": {"command": "a"}}},
            "servers have no questions; `keval init DIR --from .mcp",
        ),
        (
            "mcp.json",
            {"servers": {"a": {"url": "http://a"}}},
            "servers have no questions; `keval init DIR --from mcp.js",
        ),
    ],
)
def test_servers_of_a_client_have_no_questions(
    project: Project, here: Path, name: str, content: Any, problem: str
) -> None:
    tree(here, {name: content})

    outcome = project.keval("validate", name)

    assert (2, True) == (outcome.code, problem in outcome.stderr), outcome.stderr
