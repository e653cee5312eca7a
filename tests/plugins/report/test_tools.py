"""The use of tools: counted trial by trial, and told in summary, report, page and Markdown."""

from __future__ import annotations

import json
from typing import Any

from keval_analysis.findings.summary import Summary, ToolUse
from keval_report.use import tool_texts
from tests.conftest import Project

CONFIG = """
dataset: {path: questions.jsonl}
agents: {scripted: {}}
contexts:
  notes: {tools: [look, find, write], direct: true}
conditions: {baseline: {}, with_notes: {contexts: [notes]}}
metrics: [double/length]
"""
LOOKED: dict[str, Any] = {"name": "look", "arguments": {"page": 1}, "result": "7"}
REFUSED: dict[str, Any] = {"name": "look", "arguments": {"pge": 1}, "error": "no argument named pge", "sent": False}
FAILED: dict[str, Any] = {"name": "find", "error": "disk full"}
STRANGE: dict[str, Any] = {"name": "ghost", "error": "no such tool", "sent": False}
CALLS: list[list[dict[str, Any]]] = [[LOOKED, FAILED, LOOKED], [FAILED, REFUSED, LOOKED], [STRANGE], []]


def questions(*calls: list[dict[str, Any]]) -> str:
    asked = [{"id": f"q{n}", "question": "How?", "calls": each} for n, each in enumerate(calls)]
    return "".join(f"{json.dumps(question)}\n" for question in asked)


def counts(use: dict[str, Any]) -> tuple[int | None, ...]:
    names = ("offered", "called", "first", "failed", "calls", "errors", "rejected")
    return tuple(use[name] for name in names)


def test_each_tool_is_counted_by_trials_and_by_calls(project: Project) -> None:
    # What a baseline without tools calls is no less strange.
    project.write(eval_yaml=CONFIG.replace("baseline: {}, ", ""), questions_jsonl=questions(*CALLS))

    outcome = project.keval("run", "eval.yaml", "--json")

    assert {
        "look": (4, 2, 1, 1, 4, 1, 1),
        "find": (4, 2, 1, 2, 2, 2, 0),
        "write": (4, 0, 0, 0, 0, 0, 0),
        "ghost": (0, 1, 1, 1, 1, 1, 0),
    } == {use["tool"]: counts(use) for use in outcome.data["tools"]}
    assert {("scripted", "with_notes", 4, 0)} == {
        (use["agent"], use["condition"], use["trials"], use["unlisted"]) for use in outcome.data["tools"]
    }


def test_report_page_and_markdown_tell_it(project: Project) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl=questions(*CALLS[:2], []))
    project.keval("run", "eval.yaml", "-q")
    run = str(project.run_directory())

    told = project.keval("report", run, "--explain", env={"COLUMNS": "200"})
    markdown = project.keval("report", run, "--markdown", "--html", "page.html")

    line = "called in trials: look 2 of 3, find 2 of 3; never called: write; bad arguments: look 1 of 4 calls;"
    assert f"tools of with_notes: {line} other errors: find 2 of 2 calls" in told.stdout
    assert "never called: write" in markdown.stdout
    page = (project.root / "page.html").read_text(encoding="utf-8")
    assert '<section id="tools"' in page
    assert '<code class="foreign">write</code> <span class="dim">never called</span>' in page
    cells = "".join(f'<td class="num">{each}</td>' for each in ("3 of 3", 2, 1, 1, 4, 1, 1))
    assert f'<code class="foreign">look</code></th><td><bdi>scripted</bdi></td>{cells}' in page


def test_a_run_without_tools_says_nothing_of_them(project: Project) -> None:
    project.write(eval_yaml=CONFIG.replace(", with_notes: {contexts: [notes]}", ""), questions_jsonl=questions([]))
    outcome = project.keval("run", "eval.yaml")

    page = project.keval("report", str(project.run_directory()), "--html", "page.html")

    assert (0, 0, False) == (outcome.code, page.code, "tools of" in outcome.stdout)
    assert 'id="tools"' not in (project.root / "page.html").read_text(encoding="utf-8")


def test_recorded_calls_of_which_only_the_number_is_known_leave_open_what_was_never_called() -> None:
    known = ToolUse("ada", "docs", "look", trials=2, offered=2)
    unlisted = ToolUse("ada", "docs", "look", trials=2, offered=2, unlisted=1)
    unknown = ToolUse("ada", "docs", "look", trials=2, offered=None)

    assert [True, False, False] == [use.never_called for use in (known, unlisted, unknown)]


def test_agents_that_differ_are_told_apart_and_a_tool_that_one_of_them_called_is_not_never_called() -> None:
    uses = [
        ToolUse("ada", "docs", "look", trials=4, offered=4, called=3, calls=3),
        ToolUse("ada", "docs", "find", trials=4, offered=4, called=1, calls=1),
        ToolUse("bob", "docs", "look", trials=4, offered=4, called=4, calls=9),
        ToolUse("bob", "docs", "find", trials=4, offered=4),
    ]
    trials: Any = [_Trials("ada"), _Trials("bob")]
    summary = Summary("r", "e", "baseline", "omit", 8, trials=tuple(trials), tools=tuple(uses))

    assert [("docs", "called in trials: look 3 of 4 (ada), 4 of 4 (bob), find 1 of 4 (ada), 0 of 4 (bob)")] == list(
        tool_texts(summary)
    )


class _Trials:
    def __init__(self, agent: str) -> None:
        self.agent = agent
