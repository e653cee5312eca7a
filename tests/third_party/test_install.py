"""A third party's package is installed into an environment of its own, found by name and run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "acme_brevity"


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """A virtual environment that sees everything installed here, and acme-brevity besides."""
    home = tmp_path / "venv"
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    site = next((home / "lib").glob("python*")) / "site-packages"
    here = sysconfig.get_paths()["purelib"]
    (site / "here.pth").write_text(f"import site; site.addsitedir({here!r})\n", encoding="utf-8")
    shutil.copytree(FOLDER, tmp_path / "acme_brevity")
    installer = (
        [uv, "pip", "install", "--python", str(python)]
        if (uv := shutil.which("uv"))
        else [sys.executable, "-m", "pip", "--python", str(python), "install"]
    )
    subprocess.run([*installer, "--quiet", "--no-deps", str(tmp_path / "acme_brevity")], check=True)
    return python


def test_a_metric_of_a_third_party_is_found_by_name_and_run(environment: Path, tmp_path: Path) -> None:
    config = {
        "dataset": {"path": "q.jsonl"},
        "agents": {"gadk": {"model": "simulated/any"}},
        "conditions": {"baseline": {}},
        "metrics": ["weather/task_completion"],
    }
    (tmp_path / "eval.yaml").write_text(json.dumps(config), encoding="utf-8")
    (tmp_path / "q.jsonl").write_text('{"id": "a", "question": "What is the weather in Oslo?"}\n', encoding="utf-8")
    command = [str(environment), "-m", "keval", "run", "eval.yaml", "--metric", "acme/brevity", "--json"]
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=True, timeout=120)

    (arm,) = json.loads(done.stdout)["arms"]
    (manifest,) = tmp_path.glob("results/*/*/manifest.json")
    assert ("acme/brevity", 1) == (arm["metric"], arm["n"])
    assert "1.2.3" == json.loads(manifest.read_text(encoding="utf-8"))["versions"]["acme-brevity"]
