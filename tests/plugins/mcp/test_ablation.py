"""Ablation: a condition is also run without each of its tools, and the report ranks these by what that costs."""

from __future__ import annotations

import json
import sys

import pytest

from tests.conftest import Project
from tests.stdio_server import ENVIRONMENT

SERVER = f"""\
import sys
sys.path.append({ENVIRONMENT["PYTHONPATH"]!r})
from tests.stdio_server import Tool, serve, text
tool = Tool(lambda arguments, meta: text("7"), {{}}, (), "Look it up.")
serve("pages", lambda: dict.fromkeys(sys.argv[1:], tool))
"""
CONFIG = f"""
dataset: {{path: questions.jsonl}}
agents: {{scripted: {{}}}}
contexts:
  pages: {{type: stdio, command: {sys.executable}, args: [server.py, search, open/page], isolation: condition}}
  single: {{type: stdio, command: {sys.executable}, args: [server.py, lonely]}}
  notes: {{tools: [look, find]}}
conditions:
  baseline: {{system_prompt: "Hm."}}
  with_pages: {{system_prompt: "Hm.", contexts: [pages]}}
  with_single: {{system_prompt: "Hm.", contexts: [single], require_mcp_tool_use: true, on_missing_tool_use: keep}}
  with_notes: {{contexts: [notes]}}
metrics:
  - basic/contains: {{none_of: [without search]}}
"""
# An agent that names its condition, so that the answers without `search` are the wrong ones; and one that does not.
QUESTIONS = [{"id": f"q{n}", "question": "How?", **({"tells_context": True} if n else {})} for n in range(12)]
PAGES = ("run", "eval.yaml", "--condition", "baseline", "--condition", "with_pages")


@pytest.fixture
def pages(project: Project) -> Project:
    lines = "".join(f"{json.dumps(question)}\n" for question in QUESTIONS)
    project.write(eval_yaml=CONFIG, questions_jsonl=lines, server_py=SERVER)
    return project


def test_a_condition_is_run_without_each_tool_and_the_tools_are_ranked(pages: Project) -> None:
    pages.write(eval_yaml=f"ablate: [with_pages]\n{CONFIG}")
    outcome = pages.keval(*PAGES, env={"COLUMNS": "120"})
    run = str(pages.run_directory())
    data = pages.keval("report", run, "--json").data
    explained = pages.keval("report", run, "--explain", env={"COLUMNS": "120"})
    page = pages.keval("report", run, "--html", "page.html", "--markdown")
    resumed = pages.keval("resume", run, "--add-repetitions", "1")

    assert (0, 0, 0) == (outcome.code, page.code, resumed.code)
    named = {"pages", "pages without search", "pages without open_page"}
    assert named == pages.read("manifest.json")["config"]["contexts"].keys(), "flags left out the others"
    assert {
        ("search", "with_pages without search", "with_pages", "worse"),
        ("open/page", "with_pages without open_page", "with_pages", "unclear"),
    } == {(c["left_out"], c["condition"], c["against"], c["effects"][0]["verdict"]) for c in data["contrasts"]}
    # They are not compared with the baseline, too, so that more tools do not make that less sure.
    assert {"with_pages"} == {effect["condition"] for effect in data["effects"]}
    lines = explained.stdout.splitlines()
    at = next(
        n
        for n, line in enumerate(lines)
        if line.startswith("with_pages without one of its tools, compared with with_p")
    )
    ranked = [line.split()[:5] for line in lines[at + 1 : at + 4] if "→" in line]
    assert [["contains", "search", "1.00", "→", "0.08"], ["open/page", "1.00", "→", "1.00"]] == [
        ranked[0],
        ranked[1][:4],
    ]
    assert "  this run cannot tell what leaving out these tools changes: open/page" in outcome.stdout.splitlines()
    sentence = (
        "Leaving out these tools of with\\_pages makes scores worse: without search contains (exploratory) by 0.92"
    )
    assert sentence in page.stdout
    html = (pages.root / "page.html").read_text(encoding="utf-8")
    assert "scripted: with_pages without search against with_pages" in html
    # The conditions stand in the run's config, so that nothing has to be listed again.
    assert 2 * 4 * 12 == len(pages.lines("trials.jsonl"))
    assert {"search": "with_pages without search", "open/page": "with_pages without open_page"} == (
        pages.read("manifest.json")["config"]["ablated"]["with_pages"]
    )


def test_a_config_asks_for_it_and_a_dry_run_says_that_servers_were_started(pages: Project) -> None:
    pages.write(eval_yaml=f"ablate: [with_pages, with_single]\n{CONFIG}")

    outcome = pages.keval("run", "eval.yaml", "--dry-run", "--json")
    valid = pages.keval("validate", "eval.yaml")

    assert {
        "with_pages without search": ["pages without search"],
        "with_pages without open_page": ["pages without open_page"],
        # A context whose only tool is left out is left out itself.
        "with_single without lonely": [],
    } == {name: list(arm["contexts"]) for name, arm in outcome.data["conditions"].items() if "without" in name}
    assert "eval.yaml:1:10: added 2 conditions, each 'with_pages' without one of its tools" in outcome.stderr
    assert "eval.yaml:1:22: added 1 condition, each 'with_single' without one of its tools" in outcome.stderr
    assert "48 trials (12 samples), and those of with_pages without each of its parts, and those of w" in valid.stdout


@pytest.mark.slow
def test_a_run_that_another_config_extends_keeps_its_conditions(pages: Project) -> None:
    pages.write(questions_jsonl="".join(f"{json.dumps(question)}\n" for question in QUESTIONS[:3]))
    first = pages.keval(*PAGES, "--ablate", "with_pages", "--limit", "2", "-q")
    without_notes = CONFIG.replace("  with_single: {", "  odd_one: {").partition("  with_notes")[0]
    pages.write(eval_yaml=f"{without_notes}metrics: [basic/contains: {{none_of: [without search]}}]\n")

    outcome = pages.keval("resume", str(pages.run_directory()), "--extend", "eval.yaml", "--json")

    assert (0, 0) == (first.code, outcome.code), outcome.stderr
    trials = {arm["condition"]: arm["trials"] for arm in outcome.data["trials"]}
    assert {"with_pages without search": 3, "with_pages without open_page": 3} == {
        condition: count for condition, count in trials.items() if "without" in condition
    }


@pytest.mark.slow
def test_without_its_only_tool_a_condition_requires_none(pages: Project) -> None:
    outcome = pages.keval("run", "eval.yaml", "--condition", "with_single", "--ablate", "with_single", "--json")

    required = {arm["condition"]: arm["compliance"] is not None for arm in outcome.data["trials"]}
    assert (0, {"with_single": True, "with_single without lonely": False}) == (outcome.code, required)
    assert [("ablation", "lonely")] == [(each["kind"], each["left_out"]) for each in outcome.data["contrasts"]]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--ablate", "with_page"], "--ablate with_page: no condition named 'with_page'; did you mean 'with_pages'?"),
        (["--ablate", "baseline"], "--ablate baseline: 'baseline' has no context, so there is nothing to leave out"),
        (["--ablate", "with_notes"], "agents connect to this server themselves, so nothing about it can be changed"),
    ],
)
def test_what_cannot_be_left_out_is_said(arguments: list[str], problem: str, pages: Project) -> None:
    outcome = pages.keval("run", "eval.yaml", *arguments)

    assert (2, True) == (outcome.code, problem in outcome.stderr), outcome.stderr


def test_a_condition_that_a_config_names_wrongly_has_its_place(pages: Project) -> None:
    pages.write(eval_yaml=f"ablate: [with_pages, nobody]\n{CONFIG}")

    outcome = pages.keval("validate", "eval.yaml")

    assert (2, True) == (outcome.code, "eval.yaml:1:22: no condition named 'nobody'" in outcome.stderr)


@pytest.mark.slow
def test_the_effect_on_the_questions_in_which_a_tool_was_called_stands_beside(project: Project) -> None:
    """Of twelve questions, four call the tool; their answers alone say that it is missing."""
    calls = {"tells_context": True, "calls": [{"name": "search", "error": "gone", "sent": False}]}
    asked = [{"id": f"q{n}", "question": "How?", **(calls if n < 4 else {})} for n in range(12)]
    config = f"""
        dataset: {{path: questions.jsonl}}
        agents: {{scripted: {{}}}}
        contexts:
          pages: {{type: stdio, command: {sys.executable}, args: [server.py, search, open]}}
          fewer: {{from: pages, without: [search]}}
        conditions: {{baseline: {{}}, with_pages: {{contexts: [pages]}}, without_search: {{contexts: [fewer]}}}}
        primary: [basic/contains]
        metrics: [basic/turns, basic/contains: {{none_of: [without_search]}}]
    """
    project.write(eval_yaml=config, questions_jsonl="\n".join(map(json.dumps, asked)), server_py=SERVER)

    outcome = project.keval("run", "eval.yaml", "--json")

    assert 0 == outcome.code, outcome.stderr
    (contrast,) = (each for each in outcome.data["contrasts"] if each["kind"] == "ablation")
    effect = next(each for each in contrast["effects"] if each["metric"] == "basic/contains")
    assert (12, pytest.approx(-1 / 3), "exploratory") == (effect["n"], effect["difference"], effect["family"])
    assert (4, -1.0) == (effect["where_called"]["n"], effect["where_called"]["difference"])
    told = " ".join(project.keval("report", outcome.data["run"]).stdout.split())
    assert "only the questions in which with_pages called the tool (chosen by the data): search contains -1.00" in told
