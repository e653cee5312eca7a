"""What is checked before a run: a Ray that is not there, and nodes on which something else is installed."""

from __future__ import annotations

import os

import pytest

from tests.conftest import ON_PATH, Project
from tests.plugins.ray.conftest import RunningCluster

pytestmark = pytest.mark.slow

CONFIG = """
dataset: {path: questions.jsonl}
agents: {scripted: {}}
metrics: [double/length]
execution: {executor: {type: ray, address: "ADDRESS"}}
"""
# The driver takes these for other versions than the nodes have.
PATCHED = """
import importlib.metadata, platform

found = importlib.metadata.version
importlib.metadata.version = lambda name: "9.9" if name == "keval-doubles" else found(name)
platform.python_version = lambda: "3.99.0"
"""


def test_differing_versions_are_listed_before_anything_is_written(project: Project, cluster: RunningCluster) -> None:
    project.write(
        eval_yaml=CONFIG.replace("ADDRESS", "auto"),
        questions_jsonl='{"id": "a", "question": "a"}\n',
    )
    (project.root / "patched").mkdir()
    Project(project.root / "patched").write(sitecustomize_py=PATCHED)
    known = {**cluster.environ, "RAY_ADDRESS": cluster.address}
    fine = project.spawn("run", "eval.yaml", "-q", env=known)
    path = os.pathsep.join([str(project.root / "patched"), *ON_PATH])
    differing = project.spawn("run", "eval.yaml", "-q", env={**known, "PYTHONPATH": path})

    assert 0 == fine.code, fine.stderr
    assert 2 == differing.code, differing.stderr
    assert "keval-doubles is 1.0 there, and 9.9 here" in differing.stderr
    assert "there, and 3.99.0 here" in differing.stderr
    assert "install the same versions everywhere" in differing.stderr
    assert 1 == len([*project.root.glob("results/*/*")])


def test_a_ray_that_is_not_there_is_told_before_anything_is_written(project: Project) -> None:
    project.write(eval_yaml=CONFIG.replace("ADDRESS", "127.0.0.1:9"), questions_jsonl='{"id": "a", "question": "a"}\n')

    outcome = project.spawn("run", "eval.yaml", env={"RAY_AUTH_MODE": "disabled"})

    assert (2, True) == (outcome.code, "the Ray at 127.0.0.1:9 is not reached" in outcome.stderr), outcome.stderr
    assert not (project.root / "results").exists()
