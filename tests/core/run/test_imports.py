"""What the end of a run imports: SciPy and NumPy take longer than most runs have left to do."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.conftest import INSTALLED, Project

CODE = """
import atexit, json, sys
from keval.cli import main
heavy = ("numpy", "scipy", "scipy.linalg", "scipy.optimize", "scipy.special", "scipy.stats")
atexit.register(lambda: print(json.dumps([name for name in heavy if name in sys.modules])))
main(["run", "eval.yaml", "-q"])
"""


@pytest.mark.parametrize(
    ("conditions", "imported"),
    [("only: {}", []), ("baseline: {}, docs: {}", ["numpy", "scipy", "scipy.special"])],
    ids=["one arm", "effects"],
)
def test_a_summary_imports_what_its_figures_need(project: Project, conditions: str, imported: list[str]) -> None:
    project.write(
        eval_yaml=f"""
            dataset: {{path: q.jsonl}}
            agents: {{scripted: {{}}}}
            conditions: {{{conditions}}}
            metrics: [double/characters]
            judges: {{strict: {{}}}}
            rubrics: [double/brevity]
        """,
        q_jsonl="".join(f'{{"id": "q{n}", "question": "{"very " * (n % 7)}long?"}}\n' for n in range(20)),
    )

    done = subprocess.run(
        [sys.executable, "-c", CODE],
        cwd=project.root,
        env={**os.environ, "PYTHONPATH": str(INSTALLED)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert imported == json.loads(done.stdout.splitlines()[-1])
    arms = project.read("summary.json")["arms"]
    assert {"double/characters": "skew_t", "double/brevity": "bounded"} == {
        arm["metric"]: arm["method"] for arm in arms
    }
