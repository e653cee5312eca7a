"""Evaluations whose agent works in a workspace, by the command line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conftest import Project
from tests.plugins.workspace.attempts import git, trial_folders, write

AGENT = """
def mend(sample, context):
    folder = context.workspace.folder
    text = (folder / "src/sum.py").read_text()
    (folder / "src/sum.py").write_text(text.replace("a - b", "a + b"))
    (folder / "report.md").write_text(sample.question)
    (folder / "notes.txt").unlink()
    return "Done."
"""
SOURCE = {"src/sum.py": "def total(a, b):\n    return a - b\n", "notes.txt": "a\n", "same.txt": "b\n"}
CONFIG: dict[str, Any] = {
    "name": "mend",
    "dataset": {"path": "q.jsonl"},
    "agents": {"mine": {"type": "python", "target": "agent.py:mend"}},
    "metrics": ["basic/contains"],
    "workspace": {"copy": "source", "setup": ["cp same.txt made.txt"], "artifacts": ["*.md"]},
}


@pytest.fixture
def mending(project: Project, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A project whose agent mends a program; no folder of a trial is left in the end."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path_factory.mktemp("temporary")))
    write(project.root / "source", SOURCE)
    write(project.root, {"agent.py": AGENT})
    yield project
    assert set() == trial_folders()


def evaluate(project: Project, *samples: dict[str, Any], **config: Any) -> Any:
    (project.root / "eval.yaml").write_text(json.dumps({**CONFIG, **config}), encoding="utf-8")
    lines = [json.dumps({"question": "Mend it.", "answer": "Done.", **sample}) for sample in samples]
    (project.root / "q.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return project.keval("run", "eval.yaml", "-q")


def test_a_run_keeps_what_the_agent_has_made_of_its_workspace(mending: Project) -> None:
    outcome = evaluate(mending, {"id": "one"}, {"id": "two", "workspace": {"files": {"more.txt": "more"}}})

    assert (0, "") == (outcome.code, outcome.stderr)
    ends = {line["sample"]: line["transcript"]["end_state"] for line in mending.lines("trials.jsonl")}
    for end in ends.values():
        assert [
            {"path": "notes.txt", "kind": "deleted"},
            {"path": "report.md", "kind": "added"},
            {"path": "src/sum.py", "kind": "changed"},
        ] == end["changes"]
        assert "-    return a - b\n+    return a + b\n" in end["diff"]
        (artifact,) = end["artifacts"]
        assert "Mend it." == (mending.run_directory() / "blobs" / artifact["sha256"]).read_text()
    assert {"one": 4, "two": 5} == {name: end["facts"]["files"] for name, end in ends.items()}
    condition = mending.read("manifest.json")["conditions"]["baseline"]
    assert {"copy": "source", "files": 3} == {key: condition["workspace"][key] for key in ("copy", "files")}
    assert SOURCE == {name: (mending.root / "source" / name).read_text() for name in SOURCE}


def test_a_sample_names_the_commit_that_it_is_about(mending: Project) -> None:
    source = mending.root / "source"
    git(source, "init", "-q")
    git(source, "add", ".")
    git(source, "commit", "-qm", "Add a bug")
    git(source, "tag", "bug")
    write(source, {"src/sum.py": "print('another bug: a - b')\n"})
    git(source, "commit", "-qam", "Add another one")
    samples = [{"id": name, "workspace": {"git": {"commit": name}}} for name in ("bug", "HEAD")]

    outcome = evaluate(mending, *samples)

    assert 0 == outcome.code
    diffs = {line["sample"]: line["transcript"]["end_state"]["diff"] for line in mending.lines("trials.jsonl")}
    assert ["+    return a + b", "+print('another bug: a + b')"] == [
        next(line for line in diffs[name].splitlines() if line.startswith("+") and "a + b" in line)
        for name in ("bug", "HEAD")
    ]


@pytest.mark.parametrize(
    ("workspace", "told"),
    [
        ({"copy": "sources"}, "sources is not there; give the folder that the workspace begins with"),
        ({"copy": "source", "git": {"commit": "main"}}, "Git refuses"),
        ({"copy": "source", "files": {"../x": ""}}, "'../x' leads out of the workspace"),
        ({"files": {"a.pdf": {"copy": "gone.pdf"}}}, "gone.pdf is no file; give the one to copy"),
        ({"setup": ["echo it lacks a pump; exit 3"]}, "ended with exit status 3; its output ends:\nit lacks a pump"),
        ({"max_diff_bytes": "many"}, "expected a size such as 20 MB, got 'many'"),
        ({"sandbox": "jail"}, "expected"),
    ],
)
def test_a_workspace_that_cannot_be_made_ends_the_run_before_its_first_trial(
    mending: Project, workspace: dict[str, Any], told: str
) -> None:
    outcome = evaluate(mending, {"id": "one"}, workspace=workspace)

    assert 2 == outcome.code
    assert told in outcome.stderr
    assert "Traceback" not in outcome.stderr
    assert [] == [*mending.root.glob("results/*/*/trials.jsonl")]
