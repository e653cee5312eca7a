"""`--note` is kept with a run, and shown by whatever lists or reports it."""

from __future__ import annotations

import io

from rich.console import Console

from keval import open_run
from keval_report.commands.list import ListedRun, print_runs
from tests.conftest import Project
from tests.viewing import client_of, served

CONFIG = """
dataset: {path: questions.jsonl}
agents: {scripted: {}}
metrics: [double/length]
"""
NOTE = "shorter <b>prompt</b>"


def test_a_note_is_kept_and_shown(project: Project) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl='{"id": "a", "question": "How?"}\n')

    ran = project.keval("run", "--note", "shorter\n <b>prompt</b>\x1b[2J")

    run = project.run_directory()
    assert "note: shorter <b>prompt</b>�[2J" in ran.stdout
    assert "  note       shorter <b>prompt</b>�[2J\n" in project.keval("show", "latest").stdout
    assert "shorter &lt;b&gt;prompt" in project.keval("report", "latest", "--markdown").stdout
    assert 0 == project.keval("report", "latest", "--html", "report.html").code
    assert "shorter &lt;b&gt;prompt" in (project.root / "report.html").read_text(encoding="utf-8")

    assert 0 == project.keval("resume", "latest", "-q", "--note", NOTE).code
    assert 0 == project.keval("resume", "latest", "-q").code  # keeps it
    assert NOTE == project.read("manifest.json")["note"] == project.read("summary.json")["note"]
    assert [NOTE] == [each["note"] for each in project.keval("list", "--json").data]
    assert [NOTE] == [each["note"] for each in project.keval("history", "--json").data[0]["runs"]]

    printed, kept = io.StringIO(), open_run(run)
    print_runs([ListedRun(str(run), kept.manifest, kept.summary())], Console(file=printed, width=60))
    assert f"    {NOTE}" == printed.getvalue().splitlines()[1]
    with served(project.root / "results") as running, client_of(running) as client:
        assert "shorter &lt;b&gt;prompt" in client.get("/").text
        assert run.name in client.get("/", params={"q": "shorter"}).text
        assert run.name not in client.get("/", params={"q": "longer"}).text


def test_a_note_is_nothing_that_differs(project: Project) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl='{"id": "a", "question": "How?"}\n')
    project.keval("run", "-q", "--record", "--note", NOTE)
    first = project.run_directory()
    project.keval("run", "-q", "--replay", str(first), "--note", "the same again")
    (second,) = {path.parent for path in project.root.glob("results/*/*/manifest.json")} - {first}

    assert 0 == project.keval("compare", "--exact", str(first), str(second)).code
