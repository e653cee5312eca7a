"""Runs of recorded answers that are numbers, which rate themselves: for tests that compare runs."""

from __future__ import annotations

import json
from collections.abc import Mapping

from keval import open_run
from keval.store.run import Run
from tests.conftest import Project

__all__ = ["CONFIG", "run_of"]

CONFIG = """
name: {name}
dataset: {{path: q.jsonl}}
agents: {{one: {{type: recorded, path: {name}.jsonl}}}}
conditions: {{baseline: {{}}, with_docs: {{system_prompt: "{prompt}"}}}}
metrics: [number/rating, double/characters]
"""


def run_of(project: Project, name: str, answers: Mapping[str, float], prompt: str = "", agent: str = "one") -> Run:
    """Run an evaluation of recorded answers, one number for each sample, under two conditions."""
    config = CONFIG.replace("agents: {{one:", f"agents: {{{{{agent}:")
    project.write(**{f"{name}_yaml": config.format(name=name, prompt=prompt)})
    told = [{"id": sample, "response": str(answer)} for sample, answer in answers.items()]
    project.write(**{f"{name}_jsonl": "".join(json.dumps(line) + "\n" for line in told)})
    questions = [{"id": sample, "question": f"{sample}?"} for sample in answers]
    project.write(q_jsonl="".join(json.dumps(line) + "\n" for line in questions))
    assert 0 == project.keval("run", f"{name}.yaml", "-q").code
    return open_run(next((project.root / "results" / name).iterdir()))
