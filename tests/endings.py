"""A run whose trials were given texts, and left a diff, artifacts and the findings of checks, some of them hostile."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from tests.conftest import Project
from tests.hostile import EVERYTHING

CONFIG = """
dataset: {path: questions.jsonl}
agents: {scripted: {}}
conditions: {baseline: {}, skilled: {system_prompt: "Use them."}}
metrics: [double/length]
primary: [double/length]
"""
QUESTIONS = 12
PAGE = f"<h1>{EVERYTHING}</h1>".encode()
PAGE_SHA256 = hashlib.sha256(PAGE).hexdigest()
TRICK = "\x1b[2J\u202e"
"""What clears a terminal, and turns the direction of writing."""
DIFF = f"""\
--- a/plan.md
+++ b/plan.md
@@ -1 +1 @@
-old{TRICK}
+<script>window.injected = true</script>
""" + "".join(f"+line {number}\n" for number in range(60))


def end_state() -> dict[str, Any]:
    return {
        "changes": [{"path": "plan.md", "kind": "changed"}, {"path": f"odd{TRICK}{EVERYTHING}", "kind": "added"}],
        "diff": DIFF,
        "diff_cut": 7,
        "artifacts": [
            {"path": f"page{TRICK}.html", "size": len(PAGE), "media_type": "text/html", "sha256": PAGE_SHA256},
            {"path": "huge.bin", "size": 2**30, "left_out": "it is larger than max_artifact_bytes"},
        ],
        "checks": [
            {"name": "compiles", "kind": "command", "passed": True, "reason": "exit status 0", "duration": 0.25},
            {
                "name": f"tests {EVERYTHING}",
                "kind": "command",
                "passed": False,
                "reason": f"exit status 1{TRICK}",
                "output": "".join(f"case {number}\n" for number in range(30)) + EVERYTHING + TRICK,
            },
            {"name": "row is there", "kind": "sqlite", "passed": None, "reason": "could not run: no such file"},
        ],
        "notes": ["a link led out of the folder"],
        "facts": {"method": "hard links"},
    }


def make(project: Project) -> Path:
    """Make the run: under `skilled`, every second question reads the skill `pdf`, whose answers are the longer ones."""
    lines = [{"id": f"q{n:02}", "question": "Why? " * (2 if n % 2 else 20)} for n in range(QUESTIONS)]
    project.write(eval_yaml=CONFIG, questions_jsonl="".join(json.dumps(line) + "\n" for line in lines))
    assert 0 == project.run("eval.yaml", "-q").code
    run = project.run_directory()
    trials = project.lines("trials.jsonl")
    for trial in trials:
        if trial["condition"] == "skilled":
            transcript = trial["transcript"]
            read = int(trial["sample"][1:]) % 2 == 0
            seen = {"read": True, "model_call": 2, "by": "Read", "at": 0.5} if read else {}
            transcript["request"] = "0" * 64
            transcript["texts"] = [
                {"name": "pdf", "kind": "skill", "way": ".claude/skills", "sha256": "1" * 64, **seen},
                {"name": f"rival{TRICK}", "kind": "neighbour", "way": ".claude/skills", "sha256": "2" * 64},
                {
                    "name": "AGENTS.md",
                    "kind": "instructions",
                    "way": "system prompt",
                    "sha256": "3" * 64,
                    "read": True,
                    "model_call": 1,
                },
            ]
            transcript["end_state"] = end_state()
    (run / "trials.jsonl").write_text("".join(json.dumps(trial) + "\n" for trial in trials), encoding="utf-8")
    (run / "summary.json").unlink()  # it is derived, and of the run as it was
    (run / "blobs").mkdir(exist_ok=True)
    (run / "blobs" / PAGE_SHA256).write_bytes(PAGE)
    return run


TRIAL = "scripted/skilled/q00/1"
