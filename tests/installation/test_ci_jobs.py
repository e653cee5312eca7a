"""Jobs of pull requests install keval from wheels in place of an index, and what hosts read fits their schemas."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import attrs
import pytest
import yaml

from tests.ci_jobs import ROOT, Runner
from tests.code_host import CodeHost, pull_request, serving
from tests.installation.conftest import Newcomer

pytestmark = pytest.mark.installation

FILES = {
    "eval.yaml": "dataset: {path: questions.jsonl}\nagents: {answers: {type: recorded, path: answers.jsonl}}\n"
    "metrics: [basic/contains]\ngates: [basic/contains >= 0.9]\n",
    "questions.jsonl": '{"id": "port", "question": "Which port?", "answer": "7443"}\n'
    '{"id": "host", "question": "Which host?", "answer": "tarn"}\n',
    "answers.jsonl": '{"id": "port", "response": "7443"}\n{"id": "host", "response": "tarn"}\n',
    "requirements.txt": "",
}
SCHEMAS = {
    "github-actions": ROOT / "action.yml",
    "github-workflows": ".github/workflows/keval.yaml",
    "gitlab-ci": ".gitlab-ci.yml",
}


def test_jobs_install_keval_apart_and_evaluate_with_it(newcomer: Newcomer, wheels: Path) -> None:
    newcomer = attrs.evolve(newcomer, links=wheels)
    newcomer.type("python3 -m venv own")
    path = f"{newcomer.folder}/own/bin:{newcomer.environ['PATH']}"
    given = {"version": version("keval"), "setup": "pip install -r requirements.txt"}
    job = {"steps": [{"uses": "ours/keval@main", "with": given}]}
    with serving(CodeHost()) as host:
        runner = Runner(newcomer.folder, host, {**newcomer.environ, "PATH": path})

        done = runner.github(
            yaml.safe_dump({True: {"pull_request": {}}, "jobs": {"evaluate": job}}),
            {"pull_request": pull_request(sha=runner.push(FILES))},
        )
        newcomer.type("cd origin && keval ci init --host gitlab --on every && keval ci init --host github --on label")
        newcomer.type("rm -r .bin .tools")
        gitlab = (runner.origin / ".gitlab-ci.yml").read_text(encoding="utf-8")
        merged = runner.gitlab(gitlab, runner.push({}, to="main"), variables={"KEVAL_GITLAB_TOKEN": "token"})

    assert done is not None
    assert {"Install": 0, "Set up": 0, "Evaluate": 0, "Comment": 0} == {
        name: code for name, code in done.codes.items() if name in done.said and name != "Find the commit"
    }, done.said
    assert merged is not None
    assert ({"script": 0}, 1) == (merged.codes, len(host.of())), merged.said
    for schema, file in SCHEMAS.items():
        # The schemas come with the package.
        newcomer.type(f"cd origin && uvx check-jsonschema@0.39.0 --builtin-schema vendor.{schema} {file}")
