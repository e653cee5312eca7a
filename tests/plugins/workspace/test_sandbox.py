"""Agents that a sandbox shuts in, and what they still reach."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import sys
from pathlib import Path
from typing import Any

import pytest


from tests.conftest import Project, serve_here
from tests.plugins.workspace.attempts import write

HERE = Path(__file__).parent
LOOP = HERE.parents[1] / "agents" / "command" / "loop.py"
CODER = HERE.parents[1] / "agents" / "acp" / "coder.py"

LOOPING = {
    "type": "command",
    "command": ["python", str(LOOP), "--model={model}", "--mcp={mcp_config}", "{question}"],
    "model": "simulated/weather",
    "events": "jsonl",
    "answer": "answer",
    "env": {"OPENAI_BASE_URL": "{model_base_url}", "OPENAI_API_KEY": "{model_key}"},
}
"""An agent that asks its model and calls the tools of its servers."""

bubblewrap = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")


def evaluate(project: Project, agent: dict[str, Any], **config: Any) -> dict[str, Any]:
    """Run one trial with the weather's server, and return it."""
    question = {"id": "q1", "question": "What is the weather in Oslo?", "answer": "Oslo"}
    whole = {
        "dataset": {"path": "q.jsonl"},
        "metrics": ["basic/contains"],
        "agents": {"mine": agent},
        "contexts": {"weather": {}},
        "conditions": {"with": {"contexts": ["weather"]}},
        "execution": {"retry": {"max_attempts": 1}},
        **config,
    }
    write(project.root, {"q.jsonl": json.dumps(question), "eval.yaml": json.dumps(whole)})
    outcome = project.keval("run", "eval.yaml", "-q")
    (trial,) = project.lines("trials.jsonl")
    assert (0, None) == (outcome.code, trial["failure"]), outcome.stderr
    return trial


@bubblewrap
def test_an_agent_finds_neither_the_checks_nor_keys_nor_other_trials(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    serve_here(monkeypatch)
    monkeypatch.setenv("KEY_OF_KEVAL", "sk-canary")
    temporary = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    write(temporary, {"keval-trial-neighbour/work/canary.txt": "canary"})
    write(project.root, {"canary_check.py": "ANSWER = 'canary'", "burglar.py": (HERE / "burglar.py").read_text()})
    looked = {}
    with socket.create_server(("127.0.0.1", 0)) as forbidden:
        for sandbox, root in (("none", project.root.parent), ("bubblewrap", Path("/"))):
            port = forbidden.getsockname()[1]
            agent = {**LOOPING, "command": ["python", "burglar.py", root, port, project.root, *LOOPING["command"][1:]]}
            agent["command"] = [str(word) for word in agent["command"]]
            trial = evaluate(project, agent, workspace={"artifacts": ["found.json"]}, sandbox=sandbox)
            (artifact,) = trial["transcript"]["end_state"]["artifacts"]
            assert ["get_weather"] == [call["name"] for call in trial["transcript"]["tool_calls"]]
            looked[sandbox] = json.loads((project.run_directory() / "blobs" / artifact["sha256"]).read_text("utf-8"))

    assert [] == looked["bubblewrap"]
    assert {"canary_check.py", "canary.txt", "environ", f"connected to {port}", f"wrote to {project.root}"} <= {
        os.path.basename(each) if each.startswith("/") else each for each in looked["none"]
    }
