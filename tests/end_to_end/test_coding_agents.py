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
    project = Project(tmp_path)

    outcome = project.run(EXAMPLE, "--limit", "3", env={"PATH": installed(), "KEVAL_EXAMPLE_MODEL": None})

    assert 0 == outcome.code, outcome.stderr
    trials = project.lines("trials.jsonl")
    told = {(trial["agent"], trial["condition"]): Counter[str]() for trial in trials}
    for trial in trials:
        transcript = trial["transcript"]
        told[trial["agent"], trial["condition"]].update(call["name"] for call in transcript["tool_calls"])
        assert ("tap", "proxy") == (transcript["tool_calls_by"], transcript["model_calls_by"])
        assert transcript["model_calls"] > 0
        assert transcript["usage"]["input_tokens"] > 0
    assert 18 == len(trials)
    assert {(agent, condition) for agent, condition in told if told[agent, condition]["search_docs"] >= 3} == {
        (agent, "with_docs") for agent in ("codex", "gemini", "opencode")
    }
    assert all(not told[agent, "baseline"] for agent in ("codex", "gemini", "opencode"))
