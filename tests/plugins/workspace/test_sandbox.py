"""Agents that a sandbox shuts in, and what they still reach."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
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

MARK = "quokka4711"
"""What `burglar.py` looks for."""

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
    shutil.rmtree(project.root / "results", ignore_errors=True)
    outcome = project.keval("run", "eval.yaml", "-q")
    (trial,) = project.lines("trials.jsonl")
    assert (0, None) == (outcome.code, trial["failure"]), outcome.stderr
    return trial


@pytest.mark.slow
@bubblewrap
def test_an_agent_finds_neither_the_checks_nor_keys_nor_other_trials(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    serve_here(monkeypatch)
    monkeypatch.setenv("KEY_OF_KEVAL", f"sk-{MARK}")
    temporary = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    write(temporary, {f"keval-trial-neighbour/work/{MARK}.txt": MARK})
    write(project.root, {f"{MARK}_check.py": MARK, "burglar.py": (HERE / "burglar.py").read_text("utf-8")})
    looked = {}
    key = {"KEY_OF_KEVAL": f"sk-{MARK}"}
    another = subprocess.Popen([sys.executable, "-S", "-c", "input()"], env=key, stdin=subprocess.PIPE)
    with another, socket.create_server(("127.0.0.1", 0)) as forbidden:
        for sandbox, root in (("none", project.root.parent), ("bubblewrap", Path("/"))):
            port = forbidden.getsockname()[1]
            burglar = ["python", "burglar.py", str(root), str(port), str(project.root)]
            agent = {**LOOPING, "command": [*burglar, *LOOPING["command"][1:]]}
            trial = evaluate(project, agent, workspace={"artifacts": ["found.json"]}, sandbox=sandbox)
            (artifact,) = trial["transcript"]["end_state"]["artifacts"]
            assert "get_current_weather" in {call["name"] for call in trial["transcript"]["tool_calls"]}
            found = json.loads((project.run_directory() / "blobs" / artifact["sha256"]).read_text("utf-8"))
            looked[sandbox] = {os.path.basename(each) for each in found}
            if sandbox == "none":
                (project.root / "mine").unlink()
        another.communicate(b"\n")

    assert {f"{MARK}_check.py", f"{MARK}.txt", "environ", f"port {port}"} <= looked["none"]
    assert (set(), False) == (looked["bubblewrap"], (project.root / "mine").exists())
