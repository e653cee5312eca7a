"""Packages of a third party, and those of `keval new`, are installed into an environment, found by name and run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from keval import ToolCall, Trial, open_run
from keval.cli import main
from keval.plan.plan import sample_order

FOLDER = Path(__file__).parent
KIT = "acme_kit"
NEW = {
    "metric": "acme/brevity",
    "agent": "acme/repeater",
    "judge": "acme/strict",
    "context": "acme/notes",
    "exporter": "acme/lines",
    "hook": "acme/whereabouts",
}
"""The packages that `keval new` writes, by kind."""

CONFIG = """
dataset: {path: questions.acme, separator: "->"}
agents:
  parrot: {type: acme/parrot}
  gadk: {model: simulated/acme/greeter}
  openai: {model: simulated/acme/greeter}
contexts: {echo: {type: acme/echo, greeting: hullo}}
conditions:
  baseline: {}
  with_echo: {contexts: [echo]}
metrics:
  - acme/brevity
  - basic/contains: {any_of: ["hullo, Ada"]}
middleware:
  - acme/count: {journal: journal.txt}
execution: {executor: acme/backwards}
"""


CONFIG_OF_NEW = """
dataset: {path: questions.jsonl}
agents: {repeater: {type: acme/repeater, loud: true}}
contexts: {notes: {type: acme/notes}}
conditions: {baseline: {}, noted: {contexts: [notes]}}
metrics: [acme/brevity: {limit: 3}]
judges: {strict: {type: acme/strict, model: simulated/acme/greeter}}
plugins: [acme/whereabouts]
rubrics: [politeness: {instructions: Is it polite?, levels: {1: No., 2: Yes.}}]
execution: {retry: {max_attempts: 1}}
"""


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the packages that are installed."""
    folder = tmp_path_factory.mktemp("packages")
    shutil.copytree(FOLDER / KIT, folder / KIT)
    for kind, name in NEW.items():
        assert 0 == CliRunner().invoke(main, ["new", kind, name, "--to", str(folder / kind)]).exit_code
    return folder


@pytest.fixture(scope="module")
def environment(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment that sees everything installed here, and the third party's packages besides."""
    folder = tmp_path_factory.mktemp("third-party")
    home = folder / "venv"
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    site = next((home / "lib").glob("python*")) / "site-packages"
    here = sysconfig.get_paths()["purelib"]
    (site / "here.pth").write_text(f"import site; site.addsitedir({here!r})\n", encoding="utf-8")
    installer = (
        [uv, "pip", "install", "--python", str(python)]
        if (uv := shutil.which("uv"))
        else [sys.executable, "-m", "pip", "--python", str(python), "install"]
    )
    subprocess.run([*installer, "--quiet", "--no-deps", *map(str, packages.iterdir())], check=True)
    return python


def keval(environment: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [str(environment), "-m", "keval", *arguments]
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.slow
def test_every_seam_takes_the_parts_of_a_third_party(environment: Path, tmp_path: Path) -> None:
    (tmp_path / "eval.yaml").write_text(CONFIG, encoding="utf-8")
    (tmp_path / "questions.acme").write_text("Who is there? -> hullo, Ada\nAnd now? -> hullo, Ada\n", encoding="utf-8")

    done = keval(environment, tmp_path, "run", "eval.yaml", "--json")
    exported = keval(environment, tmp_path, "export", "latest", "--format", "acme/tally", "--loud", "--prefix", "*")

    assert (0, 0) == (done.returncode, exported.returncode), done.stderr + exported.stderr
    run = open_run("latest", root=tmp_path / "results")
    trials = list(run.trials())
    # The executor ran the last trial first, and left a blob beside each; requests and listings are blobs, too.
    order = [name for name in sample_order(["line-1", "line-2"], 0, 1) for _ in range(6)]
    assert order[::-1] == [trial.sample.id for trial in run.trials_as_finished()]
    assert sorted((trial.id for trial in trials), key=_place) == [trial.id for trial in trials]
    blobs = {path.read_text(encoding="utf-8") for path in (run.path / "blobs").iterdir()}
    assert {f"ran {trial.id}" for trial in trials} == {text for text in blobs if text.startswith("ran ")}
    # The dataset reader gave the samples; the tap watched a server that it did not start itself.
    assert ["line-1", "line-2"] == list(run.samples.ids)
    calls = [(call.server, call.result, call.executions) for trial in trials for call in _calls(trial)]
    assert [("echo", "hullo, Ada", 1)] * 4 == calls
    arms = {(arm.agent, arm.condition): arm.mean for arm in run.summary().arms if arm.metric == "basic/contains"}
    helped = {("gadk", "with_echo"), ("openai", "with_echo")}
    assert {arm: float(arm in helped) for arm in arms} == arms
    # The middleware saw every request of both agents: one at the baseline, two with a tool call.
    asked = Counter((tmp_path / "journal.txt").read_text(encoding="utf-8").splitlines())
    wires = {"gadk": "gemini", "openai": "openai-chat"}
    assert asked == Counter(
        {
            f"agent {trial.agent} {trial.id} {wires[trial.agent]}": 2 if trial.condition == "with_echo" else 1
            for trial in trials
            if trial.agent in wires
        }
    )
    (tally,) = exported.stdout.split()
    assert "* PARROT/BASELINE/LINE-1/1: WHO IS THERE? (0 BEFORE)" in Path(tmp_path, tally).read_text(encoding="utf-8")
    assert "note: scores are left out" in exported.stderr
    packages = {name: version for name, version in run.manifest.versions.items() if name.startswith("acme")}
    assert {"acme-brevity": "0.1.0", "acme-kit": "2.0.0"} == packages


@pytest.mark.slow
def test_a_conversation_with_an_agent_of_a_third_party(environment: Path, tmp_path: Path) -> None:
    (tmp_path / "eval.yaml").write_text("agents: {parrot: {type: acme/parrot}}\n", encoding="utf-8")
    code = """
import asyncio, keval

async def talk():
    async with keval.Session.open("eval.yaml") as session:
        return [await session.ask(text) for text in ("One?", "Two?")]

print(asyncio.run(talk()))
"""

    done = subprocess.run(
        [str(environment), "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60
    )

    assert "['One? (0 before)', 'Two? (1 before)']\n" == done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("kind", NEW)
def test_a_new_package_passes_its_own_tests(environment: Path, packages: Path, kind: str) -> None:
    command = [str(environment), "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", "tests"]

    done = subprocess.run(command, cwd=packages / kind, capture_output=True, text=True, check=False, timeout=120)

    assert (0, True) == (done.returncode, "1 passed" in done.stdout), done.stdout + done.stderr


@pytest.mark.slow
def test_new_packages_are_clean(environment: Path, packages: Path) -> None:
    folders = [packages / kind for kind in NEW]
    sources = [str(folder / name) for folder in folders for name in ("src", "tests")]

    for command in (
        ["ruff", "check", "--no-cache", *map(str, folders)],
        ["ruff", "format", "--no-cache", "--check", *map(str, folders)],
        ["mypy", "--strict", "--python-executable", str(environment), *sources],
    ):
        done = subprocess.run(
            [sys.executable, "-m", *command], cwd=packages, capture_output=True, text=True, check=False, timeout=300
        )
        assert 0 == done.returncode, done.stdout + done.stderr


@pytest.mark.slow
def test_new_packages_are_listed_and_take_part_in_a_run(environment: Path, tmp_path: Path) -> None:
    (tmp_path / "eval.yaml").write_text(CONFIG_OF_NEW, encoding="utf-8")
    (tmp_path / "questions.jsonl").write_text('{"id": "ada", "question": "Who is there?"}\n', encoding="utf-8")

    listed = keval(environment, tmp_path, "plugins")
    done = keval(environment, tmp_path, "run", "eval.yaml")
    exported = keval(environment, tmp_path, "export", "latest", "--format", "acme/lines", "--reasons")

    assert all(name in listed.stdout for name in NEW.values())
    # The judge gives no value, as the greeter is no judge.
    assert (3, 0) == (done.returncode, exported.returncode), done.stderr + exported.stderr
    run = open_run("latest", root=tmp_path / "results")
    assert {"WHO IS THERE?"} == {trial.output for trial in run.trials()}
    noted = "Answer in one sentence, and say where you know it from."
    told = {trial.condition: trial.transcript.instructions for trial in run.trials() if trial.transcript}
    assert {"baseline": "", "noted": noted} == told
    values = {(line.metric, line.score.value, line.failure and line.failure.kind) for line in run.scores()}
    assert {("acme/brevity", 1.0, None), ("politeness", None, "no_verdict")} == values
    assert {"asked_in": "Helsinki"} == run.sample("ada").facts
    rows = Path(tmp_path, exported.stdout.strip()).read_text(encoding="utf-8")
    assert 4 == rows.count('"reason": ')


def _calls(trial: Trial) -> tuple[ToolCall, ...]:
    return trial.transcript.tool_calls if trial.transcript else ()


def _place(id: str) -> tuple[int, str, int, int]:
    agent, condition, sample, repetition = id.split("/")
    agents, conditions = ["parrot", "gadk", "openai"], ["baseline", "with_echo"]
    return int(repetition), sample, conditions.index(condition), agents.index(agent)
