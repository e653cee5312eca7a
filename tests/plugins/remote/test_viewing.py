"""Runs that lie elsewhere, in the viewer and in Python."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

import keval
from keval.seams.results import results_folder
from keval_viewer.play import Play
from tests.plugins.remote.conftest import Machine, eventually, questions
from tests.viewing import client_of, served


@pytest.fixture
def reader(machine: Callable[[str], Machine], monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Another machine, which this process is; the first one has made a run."""
    machine("a").keval("run", "eval.yaml")
    found = machine("b")
    monkeypatch.setenv("KEVAL_CACHE", str(found.cache))
    return found


def test_the_viewer_brings_what_it_shows(reader: Machine, bucket: Path) -> None:
    (path,) = bucket.glob("results/*/*")

    with served(results_folder(reader.url)) as running, client_of(running) as client:
        listed = eventually(lambda: path.name in (page := client.get("/").text) and page)
        had = reader.files()
        page = client.get(f"/runs/shared/{path.name}")

    assert "shared" in listed
    assert {"manifest.json", "summary.json"} == had
    assert 200 == page.status_code
    assert {"trials.jsonl", "scores.jsonl", "samples.jsonl"} <= reader.files()


@pytest.mark.slow
def test_the_viewer_follows_a_run_of_another_machine(
    machine: Callable[[str], Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = machine("a"), machine("b")
    monkeypatch.setenv("KEVAL_CACHE", str(b.cache))
    a.project.write(questions_jsonl=questions(5, hang=True))
    with a.begin("run", "eval.yaml") as process:
        try:
            with served(results_folder(a.url)) as running, client_of(running) as client:
                eventually(lambda: "shared" in client.get("/").text)
                run = eventually(lambda: [*b.cache.glob("*/*/*/manifest.json")])[0].parent.name
                page = eventually(lambda: _live(client.get(f"/runs/shared/{run}").text))
        finally:
            process.kill()

    assert "Interrupted" not in page
    assert 3 == b.run().joinpath("trials.jsonl").read_bytes().count(b"\n")


def _live(page: str) -> str:
    """The page of a run that is running, with all trials before the one that hangs."""
    return page if "Running." in page and "3 <span" in page else ""


def test_python_reads_and_writes_there(reader: Machine, bucket: Path) -> None:
    (path,) = bucket.glob("results/*/*")

    by_id = keval.open_run(path.name, reader.url)
    by_url = keval.open_run(f"{reader.url}/shared/{path.name}")
    made = keval.evaluate("eval.yaml", results=reader.url)

    assert ["How, 0?", "How, 1?", "How, 2?"] == [trial.output for trial in by_id.trials()]
    assert by_id.path == by_url.path
    lines = (bucket / "results" / "shared" / made.id / "trials.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["id"] for line in lines] == [trial.id for trial in made.trials_as_finished()]


def test_a_play_in_which_something_was_asked_is_kept_there_and_an_empty_one_nowhere(
    machine: Callable[[str], Machine], bucket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = machine("a")
    for name, value in a.environ.items():
        monkeypatch.setenv(name, value)

    async def play(*texts: str) -> None:
        async with Play.open("eval.yaml", a.url) as playing:
            for text in texts:
                await playing.ask(text)

    asyncio.run(play())
    empty = [path for path in bucket.rglob("*") if path.is_file()]
    asyncio.run(play("How?"))

    assert [] == empty
    (trial,) = map(json.loads, next(bucket.glob("results/*/*/trials.jsonl")).read_bytes().splitlines())
    assert "How?" == trial["output"]
    assert 0 == machine("b").keval("show", "latest").code
