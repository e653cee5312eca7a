"""A run in which everything that others write is hostile: labels, questions, answers, tools, results, claims."""

from __future__ import annotations

import json
from pathlib import Path

from tests.conftest import Project

INJECTIONS = (
    "<script>window.injected = true</script>",
    "</script><script>window.injected = true</script>",
    "</template><img src=x onerror='window.injected = true'>",
    "<!-- <script> ",
    '"><svg onload="window.injected = true">',
    "\u2028\u2029 @somebody fixes #12 | `code` [link](https://example.org)",
)
"""What ends an element, an attribute, a script or a comment, or a line of JavaScript, or means something to GitHub."""

EVERYTHING = " ".join(INJECTIONS)
LABEL = "<img src=x onerror=window.injected=true>"
_LABELS = {name: f"{name} {LABEL}" for name in ("agent-label", "condition-label", "judge-label")}
"""Labels that a config may have, and what stands in their place in the run's files: a run may come from anybody."""

CONFIG = {
    "name": "hostile",
    "description": EVERYTHING,
    "dataset": {"path": "questions.jsonl"},
    "agents": {"agent-label": {"type": "recorded", "path": "answers.jsonl"}},
    "conditions": {
        "baseline": {"system_prompt": EVERYTHING},
        "condition-label": {"system_prompt": f"{EVERYTHING} Be brief."},
    },
    "metrics": ["double/length", "basic/equals", "basic/turns"],
    "judges": {"judge-label": {"type": "reader"}},
    "rubrics": ["double/brevity"],
}


def write(root: Path, *, questions: int = 6) -> None:
    """Write the evaluation: each question answered under two conditions, the last one with a failure."""
    (root / "eval.yaml").write_text(json.dumps(CONFIG), encoding="utf-8")
    samples, answers = [], []
    for number in range(questions):
        name = f"{number} {LABEL}"
        samples.append(
            {
                "id": name,
                "question": f"How much is {number}? {EVERYTHING}",
                "answer": f"{number}",
                "level": 1 + number % 3,
                "claims": [f"claim {number} {EVERYTHING}"] if number % 2 else [],
                f"kind {LABEL}": f"{'even' if number % 2 == 0 else 'odd'} {LABEL}",
                "facts": {LABEL: EVERYTHING},
            }
        )
        calls = [
            {"name": f"look {LABEL}", "arguments": {LABEL: EVERYTHING}, "result": EVERYTHING},
            {"name": "fail", "error": EVERYTHING},
        ]
        for condition, answer in (("baseline", f"{number}"), ("condition-label", f"{EVERYTHING} {number}")):
            told = {"id": name, "condition": condition, "tool_calls": calls, "response_time": 0.5}
            last = number == questions - 1 and condition == "condition-label"
            answers.append({**told, "error": EVERYTHING} if last else {**told, "response": answer})
    for file, lines in (("questions.jsonl", samples), ("answers.jsonl", answers)):
        (root / file).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def run(project: Project) -> Path:
    """Run the evaluation, make the labels of the run hostile, too, and return its directory."""
    write(project.root)
    outcome = project.run("eval.yaml")
    assert 3 == outcome.code, outcome.stderr  # as a trial fails
    folder = project.run_directory()
    for name in ("manifest.json", "trials.jsonl", "scores.jsonl"):
        text = (folder / name).read_text(encoding="utf-8")
        for plain, hostile in _LABELS.items():
            written = json.dumps(hostile)[1:-1]
            text = text.replace(f'"{plain}"', f'"{written}"')
            text = text.replace(f'"{plain}/', f'"{written}/').replace(f"/{plain}/", f"/{written}/")  # of trials' ids
        (folder / name).write_text(text, encoding="utf-8")
    manifest = json.loads((folder / "manifest.json").read_bytes())
    manifest.pop("sealed", None)  # it is not to be said that the run changed
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return folder
