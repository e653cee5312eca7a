"""The example of a documentation's effect: a real MCP server, the plain agent, and a judge that needs no key."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from keval_simulator.judge.facts import Text
from tests.conftest import Outcome, Project

EXAMPLE = Path(__file__).parents[2] / "examples" / "context-ab"
QUESTIONS: list[dict[str, Any]] = [
    json.loads(line) for line in (EXAMPLE / "questions.jsonl").read_text(encoding="utf-8").splitlines()
]
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in (EXAMPLE / "docs").glob("*.md")}
RUBRICS = ("factual_adherence", "completeness", "helpfulness_and_clarity")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Outcome]:
    """The example, with fewer questions and without repetitions."""
    project = Project(tmp_path_factory.mktemp("context-ab"))
    return project, project.run(EXAMPLE / "context-ab.yaml", "--limit", "5", "--repetitions", "1")


def test_the_documentation_helps_and_the_report_says_who_judged(run: tuple[Project, Outcome]) -> None:
    project, outcome = run

    assert 0 == outcome.code, outcome.stderr
    summary = project.read("summary.json")
    effects = {effect["metric"]: effect["difference"] for effect in summary["effects"]}
    assert set(RUBRICS) == effects.keys()
    assert ["held"] * 3 == [gate["verdict"] for gate in summary["gates"]]
    assert min(effects["factual_adherence"], effects["completeness"]) > 1
    means = {(arm["condition"], arm["metric"]): arm["mean"] for arm in summary["arms"]}
    assert means["baseline", "completeness"] < 3 < means["with_docs", "completeness"] < 5
    assert ["simulated/docs", "simulated/judge"] == summary["simulated"]
    assert "SIMULATED MODEL" in outcome.stdout


def test_tools_are_used_and_every_score_says_that_it_is_simulated(run: tuple[Project, Outcome]) -> None:
    project, _ = run
    made: dict[str, list[dict[str, Any]]] = {"baseline": [], "with_docs": []}
    for trial in project.lines("trials.jsonl"):
        made[trial["condition"]] += trial["transcript"]["tool_calls"]

    assert [] == made["baseline"]
    assert {"search_docs"} <= {call["name"] for call in made["with_docs"]} <= {"search_docs", "read_page"}
    assert [] == [call["error"] for call in made["with_docs"] if call["error"]]
    scores = project.lines("scores.jsonl")
    assert 30 == len(scores)
    assert all(score["reason"].startswith("Simulated judge: ") for score in scores)
    assert fmean(score["value"] for score in scores) > 1


def test_there_are_enough_questions_of_every_kind() -> None:
    pages = [len(question["metadata"]["pages"]) for question in QUESTIONS]

    assert len(pages) >= 24
    assert {0, 1, 2} == set(pages)
    assert set(PAGES) >= {page for question in QUESTIONS for page in question["metadata"]["pages"]}
    assert 8 <= len(PAGES) <= 15


def test_every_golden_answer_is_in_the_pages_that_it_names() -> None:
    missing: dict[str, list[str]] = {}
    for sample in QUESTIONS:
        # `fetch latest` is documented as `fetch SNAPSHOT`, of which `latest` is one.
        pages = "\n\n".join(PAGES[page] for page in sample["metadata"]["pages"]).replace(
            "fetch SNAPSHOT", "fetch latest"
        )
        found = [fact.said for fact in Text.read(sample["answer"]).facts if fact.key not in Text.read(pages).comparable]
        if found and sample["metadata"]["pages"]:
            missing[sample["id"]] = found

    assert {} == missing


def test_what_the_documentation_is_silent_on_is_in_none_of_its_pages() -> None:
    subjects = {"tape": "tape", "price": "support contract"}

    assert subjects.keys() == {sample["id"] for sample in QUESTIONS if not sample["metadata"]["pages"]}
    everything = " ".join(PAGES.values())
    assert [] == [subject for subject in subjects.values() if re.search(subject, everything, re.IGNORECASE)]


@pytest.mark.parametrize("model", ["openai/gpt-4o-mini", "anthropic/claude-sonnet-5-5"])
def test_a_real_judge_is_one_line(project: Project, model: str) -> None:
    shutil.copytree(EXAMPLE, project.root, dirs_exist_ok=True)
    config = project.root / "context-ab.yaml"
    lines = config.read_text(encoding="utf-8").splitlines()
    changed = [re.sub(r"^  model: simulated/judge$", f"  model: {model}", line) for line in lines]
    config.write_text("\n".join(changed), encoding="utf-8")

    outcome = project.keval("validate", str(config))

    assert 1 == sum(one != other for one, other in zip(lines, changed, strict=True))
    assert 0 == outcome.code, outcome.stderr


@pytest.mark.slow
def test_what_helps_is_what_the_pages_say_and_the_search(tmp_path: Path) -> None:
    project = Project(tmp_path)

    outcome = project.run(EXAMPLE / "what-helps.yaml", "--limit", "6", "--repetitions", "1")

    assert 0 == outcome.code, outcome.stderr
    means = {
        arm["condition"]: arm["mean"]
        for arm in project.read("summary.json")["arms"]
        if arm["metric"] == "factual_adherence"
    }
    placebo, no_search, no_read = (
        means["placebo"],
        means["with_docs without search_docs"],
        means["with_docs without read_page"],
    )
    assert means["with_docs"] == pytest.approx(means["terse"], abs=0.5)
    assert min(means["with_docs"], means["terse"]) > 1 + max(placebo, no_search, means["baseline"])
    assert no_read > 1 + no_search
    # What scrambled results name are no pages, so that reading one fails.
    answered = {
        (call["name"], call["changed"])
        for trial in project.lines("trials.jsonl")
        if trial["condition"] == "placebo"
        for call in trial["transcript"]["tool_calls"]
        if call["error"] is None
    }
    assert {("search_docs", "scrambled")} == answered


def test_the_committed_recording_replays_to_what_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*args: object, **options: object) -> None:
        raise AssertionError(f"a replay starts nothing and connects to nothing: {args}")

    project, recording = Project(tmp_path), EXAMPLE / "recording"
    monkeypatch.setattr("subprocess.Popen.__init__", forbidden)
    monkeypatch.setattr("socket.socket.connect", forbidden)
    outcome = project.run(EXAMPLE / "context-ab.yaml", "--replay", str(recording), "-j", "16")

    again = project.keval("compare", "--exact", str(recording), str(project.run_directory()))
    assert (0, 0) == (outcome.code, again.code), again.stdout
    assert "REPLAY: answers recorded 20" in outcome.stdout
    assert "Changed since" not in outcome.stdout
    assert 6 == len(project.lines("trials.jsonl"))
