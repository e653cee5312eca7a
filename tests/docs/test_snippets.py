"""Every snippet of the documentation does what it shows."""

from __future__ import annotations

import doctest
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console

from keval.config.evaluation import DatasetFile
from keval.dataset.read import read_dataset
from keval.seams import registry
from keval.store.run import list_runs
from keval_analysis.history.database import open_history
from keval_analysis.history.trends import TrendChoice, trend_of
from keval_replay.frames import FrameFile, traffic_file
from keval_report.history import print_history
from keval_weather.stored import StoredPreferences
from tests.conftest import Project
from tests.histories import rated
from tests.stdio_server import look_up

ROOT = Path(__file__).parents[2]
# Those of docs/tutorials are executed as a whole, by test_tutorials.py.
PAGES = [
    ROOT / "README.md",
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if page.parent.name != "tutorials"),
    *sorted(
        path for folder in ("agents", "judges", "metrics", "plugins") for path in (ROOT / folder).glob("*/README.md")
    ),
]
AGENTS = ROOT / "docs" / "agents"
FILE = re.compile(r"^`([\w./]+)`[^\n]*:\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)
"""A file on a page about agents: a block after a line that begins with its name and ends in a colon."""
FAULTS = "faults: [{status: 429, share: 5%}]\n"
TONE = "instructions: Is it polite?\nlevels: {1: It is rude., 2: It is polite.}\n"
CHECKS = """
import attrs

def brevity(trial): ...
def named(output, answer): ...

@attrs.frozen
class AtMost:
    words: int = 5
    def score(self, trial): ...

class Mine:
    async def grade(self, trial, rubrics, context): ...
"""
HOOKS = "from keval.plugin import hookimpl\n\n@hookimpl\ndef keval_run_finished(directory, summary): ...\n"
# What a fragment of a config needs around it to be one.
REST: dict[str, Any] = {
    "dataset": {"path": "questions.jsonl"},
    "agents": {"gadk": {"model": "simulated/any"}},
    "conditions": {"baseline": {}},
    "metrics": ["weather/task_completion"],
}


def blocks(page: Path, language: str) -> list[str]:
    """The snippets of a page in one language, but for the files of a page that is run as a whole."""
    text = page.read_text(encoding="utf-8")
    if page.parent == AGENTS:
        text = FILE.sub("", text)
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def pages_with(language: str, *slow: str) -> Iterator[Any]:
    for page in PAGES:
        if blocks(page, language):
            name = str(page.relative_to(ROOT))
            yield pytest.param(page, id=name, marks=[pytest.mark.slow] * (name in slow))


def snippets(language: str) -> Iterator[Any]:
    for page in PAGES:
        for number, block in enumerate(blocks(page, language), start=1):
            yield pytest.param(block, id=f"{page.relative_to(ROOT)} {number}")


def recorded_run(project: Project) -> None:
    """Make the run that docs/run-directory.md reads."""
    shutil.copytree(ROOT / "examples" / "recorded", project.root, dirs_exist_ok=True)
    assert 0 == project.keval("run", "recorded.yaml", "-q").code


def exported_tables(project: Project) -> None:
    """Make the tables that docs/export.md reads."""
    recorded_run(project)
    for name in ("csv", "parquet"):
        assert 0 == project.keval("export", "latest", "--format", name, "--to", "tables").code


def session_config(project: Project) -> None:
    """Write the config that docs/sessions.md shows."""
    config, *_ = blocks(ROOT / "docs" / "sessions.md", "yaml")
    (project.root / "chat.yaml").write_text(config, encoding="utf-8")


def play_config(project: Project) -> None:
    """Write the config that docs/play.md shows."""
    config, *_ = blocks(ROOT / "docs" / "play.md", "yaml")
    (project.root / "weather.yaml").write_text(config, encoding="utf-8")


def git_repository(folder: Path) -> None:
    """Make the Git repository that docs/workspaces.md copies."""
    folder.mkdir()
    (folder / "main.py").write_text("", encoding="utf-8")
    for command in ("init -q", "add .", "-c user.name=A -c user.email=a@example.org commit -qm One", "tag v1.2"):
        subprocess.run(["git", "-C", str(folder), *command.split()], check=True)


def evaluation(project: Project) -> None:
    """Write the config that docs/python.md shows, and its dataset."""
    config, *_ = blocks(ROOT / "docs" / "python.md", "yaml")
    (project.root / "eval.yaml").write_text(config, encoding="utf-8")
    shutil.copy(ROOT / "examples" / "weather" / "questions.jsonl", project.root)


def history(project: Project) -> None:
    """Make the runs, and a file of their history, that docs/history.md shows."""
    rated(project, 1, 0.2, name="support")
    rated(project, 2, 0.8, name="support", prompt="Answer briefly.")
    rated(project, 3, 0.8, name="support", prompt="Answer briefly.", questions=4)
    rated(project, 4, 0.8, name="support", prompt="Answer briefly.")
    assert 0 == project.keval("history", "--sqlite", "history.sqlite").code


def recorded_traffic(project: Project, path: str) -> None:
    """Make a run with a recording, which has nothing yet."""
    recorded_run(project)
    found = project.run_directory()
    manifest = {**json.loads((found / "manifest.json").read_text(encoding="utf-8")), "recording": {"since": "2026"}}
    (project.root / path).mkdir(parents=True)
    (project.root / path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    with FrameFile(traffic_file(project.root / path)):
        """Opening the file makes it."""


# What the Python of a page needs in its working directory.
SURROUNDINGS = {
    "docs/export.md": exported_tables,
    "docs/history.md": history,
    "docs/play.md": play_config,
    "docs/python.md": evaluation,
    "docs/remote-results.md": recorded_run,
    "docs/run-directory.md": recorded_run,
    "docs/sessions.md": session_config,
}


@pytest.fixture
def folder(project: Project) -> Project:
    shutil.copy(ROOT / "examples" / "weather" / "questions.jsonl", project.root)
    (project.root / "my_server.py").write_text(look_up("It is 42."), encoding="utf-8")
    (project.root / "tone.yaml").write_text(TONE, encoding="utf-8")
    (project.root / "my_agent.py").write_text("def answer(question): ...\n", encoding="utf-8")
    (project.root / "checks.py").write_text(CHECKS, encoding="utf-8")
    (project.root / "hooks.py").write_text(HOOKS, encoding="utf-8")
    (project.root / "faults.yaml").write_text(FAULTS, encoding="utf-8")
    (anchors,) = blocks(ROOT / "docs" / "reviews.md", "jsonl")
    (project.root / "anchors.jsonl").write_text(anchors, encoding="utf-8")
    (project.root / "questions.tsv").write_text("question\tanswer\nHow much is 6 × 7?\t42\n", encoding="utf-8")
    for path in ("AGENTS.md", "repo/AGENTS.md"):
        (project.root / path).parent.mkdir(exist_ok=True)
        (project.root / path).write_text("# Style\n\nBe brief.\n\n# Tests\n\nRun them.\n", encoding="utf-8")
    for name in ("pdf", "docx", "xlsx"):
        text = f"---\nname: {name}\ndescription: Reads {name}.\n---\nUse a library.\n"
        (project.root / "skills" / name).mkdir(parents=True)
        (project.root / "skills" / name / "SKILL.md").write_text(text, encoding="utf-8")
    (project.root / "plugins" / "office" / ".claude-plugin").mkdir(parents=True)
    (project.root / "plugins" / "office" / ".claude-plugin" / "plugin.json").write_text('{"name": "office"}')
    questions = (project.root / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    for name in ("gadk.jsonl", "ms.jsonl"):
        answers = (json.dumps({"id": json.loads(question)["id"], "response": "It is mild."}) for question in questions)
        (project.root / name).write_text("\n".join(answers), encoding="utf-8")
    return project


@pytest.mark.parametrize("page", [*pages_with("python", "docs/play.md", "docs/sessions.md")])
def test_python_of_a_page_runs(project: Project, simulated_here: None, page: Path) -> None:
    prepare = SURROUNDINGS.get(str(page.relative_to(ROOT)))
    if prepare is not None:
        prepare(project)
    names: dict[str, Any] = {"__name__": "snippet"}
    for block in blocks(page, "python"):
        if ">>>" in block:
            test = doctest.DocTestParser().get_doctest(block, names, page.name, str(page), 0)
            assert 0 == doctest.DocTestRunner().run(test, clear_globs=False).failed
            names = test.globs
        else:
            exec(compile(block, str(page), "exec", dont_inherit=True), names)


def test_the_page_about_the_history_shows_what_is_printed(project: Project) -> None:
    history(project)
    page = ROOT / "docs" / "history.md"
    screen = io.StringIO()

    with open_history(list_runs(project.root / "results")) as database:
        trend = trend_of(database, "support", TrendChoice())
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert trend is not None
    print_history([trend], Console(width=100, file=screen, highlight=False), Path("results"))

    assert blocks(page, "text") == [screen.getvalue()]
    (told,) = re.findall(r"^Its tables are ([^;]*);", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert tables == set(re.findall(r"`(\w+)`", told))


@pytest.mark.slow
def test_the_tests_of_the_python_page_hold_its_config_to_its_gates(project: Project) -> None:
    evaluation(project)
    _, tests = blocks(ROOT / "docs" / "python.md", "python")
    (project.root / "test_evaluation.py").write_text(tests, encoding="utf-8")

    told = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", ".", "test_evaluation.py"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": ""},
    )

    # A slow machine adds a warning.
    counts = re.search(r"2 passed,( 1 warning,)? 5 subtests passed", told.stdout)
    assert (0, True) == (told.returncode, bool(counts)), told.stdout


@pytest.mark.parametrize("block", list(snippets("yaml")))
def test_yaml_is_a_valid_part_of_a_config(folder: Project, block: str) -> None:
    given = yaml.safe_load(block)
    if "jobs" in given or "steps" in given:
        return  # a workflow, or a part of one, whose steps test_ci.py executes
    if "acme/" in block:
        return  # of a third party's package, which test_plugin_guide.py installs and runs
    if "tasks.yaml" in block:
        return  # an evaluation with its files, which test_verify_page.py examines
    if isinstance(given, list):
        record = folder.root / "record.yaml"
        record.write_text(block, encoding="utf-8")
        assert len(given) == len(read_dataset(DatasetFile(record)).samples)
        return
    if "expect" in given:
        record = folder.root / "record.yaml"
        record.write_text(yaml.safe_dump([given]), encoding="utf-8")
        assert len(given["expect"]) == len(read_dataset(DatasetFile(record)).samples[0].expect)
        return
    if "facts" in given:
        record = folder.root / "record.yaml"
        record.write_text(yaml.safe_dump([{"question": "How?", **given}], default_flow_style=False), encoding="utf-8")
        assert given["facts"].keys() == read_dataset(DatasetFile(record)).samples[0].facts.keys()
        return
    if "tasks" in given:
        (folder.root / "coder.yaml").write_text(block, encoding="utf-8")
        given = {"middleware": [{"simulated/coder": {"path": "coder.yaml"}}]}
    if (recorded := re.search(r"recorded: (results/[\w/-]+)", block)) is not None:
        recorded_traffic(folder, recorded[1])
    if "levels" in given:
        (folder.root / "tone.yaml").write_text(block, encoding="utf-8")
        given = {"rubrics": ["tone.yaml"], "judge": {"model": "simulated/judge"}}
    if given.get("sandbox", "none") != "none":  # which shuts in programs alone
        given = {"agents": {"mine": {"type": "command", "command": ["python"]}}, **given}
    if "copy: repository" in block:
        git_repository(folder.root / "repository")
    config = block if {"dataset", "conditions"} <= given.keys() else yaml.safe_dump({**REST, **given})
    (folder.root / "eval.yaml").write_text(config, encoding="utf-8")

    secrets = dict.fromkeys(("TOKEN", "WEATHER_KEY", "TICKETS_TOKEN", "ORDERS_SECRET"), "sk-0123456789")
    outcome = folder.keval("validate", "eval.yaml", env={**secrets, "KUBECONFIG": "config"})

    if re.search("claude.code", block) and find_spec("keval_claude_code") is None:
        missing = "comes with keval-claude-code, which is not installed"
        assert (2, [True]) == (outcome.code, [missing in problem for problem in outcome.stderr.splitlines()])
    elif "type: ray" in block and find_spec("keval_ray") is None:
        missing = "the executor 'ray' comes with keval-ray, which is not installed"
        assert (2, [True]) == (outcome.code, [missing in problem for problem in outcome.stderr.splitlines()])
    else:
        assert (0, "") == (outcome.code, outcome.stderr)


@pytest.mark.parametrize("block", list(snippets("json")))
def test_json_is_a_recorded_answer_or_a_store_of_preferences(folder: Project, block: str) -> None:
    if "arms" in (stored := json.loads(block)):
        (folder.root / "preferences.json").write_text(block, encoding="utf-8")
        assert stored == StoredPreferences(folder.root / "preferences.json").content
        return
    config = {"dataset": {"path": "questions.jsonl"}, "agents": {"recorded": {"path": "one.jsonl"}}}
    (folder.root / "eval.yaml").write_text(yaml.safe_dump({**config, "metrics": ["weather"]}), encoding="utf-8")
    (folder.root / "one.jsonl").write_text(json.dumps(json.loads(block)), encoding="utf-8")
    sample = json.loads(block)["id"]

    outcome = folder.keval("run", "eval.yaml", "--sample-id", sample)

    assert 0 == outcome.code, outcome.stderr
    assert f"recorded/baseline/{sample}/1" == folder.lines("trials.jsonl")[0]["id"]


@pytest.mark.parametrize("page", [*pages_with("toml")])
def test_entry_points_of_a_page_lead_to_its_python(page: Path) -> None:
    defined = re.findall(r"^(?:class |def )?(\w+)(?: = |[(:])", "\n".join(blocks(page, "python")), re.MULTILINE)
    points = [tomllib.loads(block)["project"]["entry-points"] for block in blocks(page, "toml")]

    targets = {target for groups in points for group in groups.values() for target in group.values()}
    assert [] == [target for target in targets if target.partition(":")[2] not in defined]
    assert {group for groups in points for group in groups} <= {*registry.GROUPS, *registry.groups()}


@pytest.mark.slow
def test_the_power_page_shows_what_its_commands_print(project: Project) -> None:
    shutil.copytree(ROOT / "examples" / "recorded", project.root, dirs_exist_ok=True)
    page = ROOT / "docs" / "power.md"
    commands = [line for block in blocks(page, "console") for line in block.splitlines()]

    outcomes = [project.keval(*shlex.split(command.removeprefix("keval "))) for command in commands]

    assert [("run", 0), ("power", 0), ("power", 0)] == [
        (command.split()[1], done.code) for command, done in zip(commands, outcomes, strict=True)
    ]
    shown = [block.splitlines() for block in blocks(page, "text")]
    printed = [outcome.stdout.splitlines() for outcome in outcomes[1:]]
    assert [[], []] == [[line for line in ours if line not in told] for ours, told in zip(shown, printed, strict=True)]


def test_the_commands_of_the_readme_run(folder: Project) -> None:
    (config,) = blocks(ROOT / "README.md", "yaml")
    commands = [line for line in blocks(ROOT / "README.md", "console")[-1].splitlines() if line]
    (folder.root / "eval.yaml").write_text(config, encoding="utf-8")
    (folder.root / "questions.jsonl").write_text('{"id": "q1", "question": "What is the answer?"}\n', encoding="utf-8")

    outcomes = [folder.keval(*shlex.split(command.removeprefix("keval "))) for command in commands]

    assert ["validate", "run", "run", "show", "report"] == [command.split()[1] for command in commands]
    assert [(0, "")] * 5 == [(done.code, done.stderr if done.code else "") for done in outcomes]
    assert "look_up(question=" in outcomes[3].stdout
