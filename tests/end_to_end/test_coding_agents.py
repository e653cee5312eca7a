"""The example of coding agents: Codex, Gemini CLI and opencode, and a real documentation server."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.coding_agents import RECIPES, installed
from tests.conftest import Project

EXAMPLE = Path(__file__).parents[2] / "examples" / "context-ab" / "coding-agents.yaml"


def test_the_examples_agents_are_the_recipes_of_the_documentation() -> None:
    agents: dict[str, dict[str, Any]] = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))["agents"]

    assert {"codex", "gemini", "opencode"} == agents.keys()
    assert agents == {name: {**RECIPES[name], "model": agents[name]["model"]} for name in agents}


@pytest.mark.slow
def test_coding_agents_answer_with_the_documentation_and_without_it(tmp_path: Path) -> None:
    told = use_of_tools(Project(tmp_path), EXAMPLE, "--limit", "3")

    assert {"codex", "gemini", "opencode"} == {agent for agent, _ in told}
    check(told, searches=3)


@pytest.mark.slow
def test_the_other_agents_over_the_protocol_answer_alike(tmp_path: Path) -> None:
    config: dict[str, Any] = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))
    others = {name: {**RECIPES[name], "model": "simulated/docs"} for name in RECIPES if name not in config["agents"]}
    config["contexts"]["docs"]["cwd"] = str(EXAMPLE.parent)
    config |= {"agents": others, "dataset": {"path": str(EXAMPLE.with_name("questions.jsonl"))}}
    (tmp_path / "others.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")

    told = use_of_tools(Project(tmp_path), tmp_path / "others.yaml", "--limit", "1")

    assert {"codex-acp", "claude"} == {agent for agent, _ in told}
    check(told, searches=1)


@pytest.mark.slow
def test_a_recorded_run_of_programs_is_replayed_though_they_draw_ids_and_measure_times(tmp_path: Path) -> None:
    project, env = Project(tmp_path), {"PATH": installed(), "KEVAL_EXAMPLE_MODEL": None}

    recorded = project.run(EXAMPLE, "--limit", "1", "--record", env=env)
    replayed = project.run(EXAMPLE, "--limit", "1", "--replay", str(project.run_directory()), env=env)

    assert (0, 0) == (recorded.code, replayed.code), replayed.stderr


def use_of_tools(project: Project, config: Path, *args: str) -> dict[tuple[str, str], Counter[str]]:
    """Run a config with the real programs, and count the calls of each tool by agent and condition."""
    outcome = project.run(config, *args, env={"PATH": installed(), "KEVAL_EXAMPLE_MODEL": None})
    assert 0 == outcome.code, outcome.stderr
    told: dict[tuple[str, str], Counter[str]] = {}
    for trial in project.lines("trials.jsonl"):
        transcript = trial["transcript"]
        assert ("tap", "proxy") == (transcript["tool_calls_by"], transcript["model_calls_by"])
        assert transcript["model_calls"] > 0
        assert transcript["usage"]["input_tokens"] > 0
        calls = told.setdefault((trial["agent"], trial["condition"]), Counter())
        calls.update(call["name"] for call in transcript["tool_calls"])
    return told


def check(told: dict[tuple[str, str], Counter[str]], searches: int) -> None:
    """Check that every agent searched for each question where it could, and called nothing else."""
    for (_, condition), calls in told.items():
        if condition == "with_docs":
            assert calls["search_docs"] >= searches
            assert calls.keys() <= {"search_docs", "read_page"}
        else:
            assert not calls
