"""A run that is followed while it runs: what is sent, and a browser that watches one from begin to end."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections import UserDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import httpx2
import pytest
from filelock import FileLock
from playwright.sync_api import Page, expect

from keval import Run
from keval_viewer.app import Serving
from keval_viewer.live import Following, Seen
from keval_viewer.page import run_url
from tests import viewing
from tests.conftest import ON_PATH, Project
from tests.viewing import client_of, needs_chromium

CONFIG = """
name: watched
dataset: {path: questions.jsonl}
agents: {scripted: {delay: 0.4}}
conditions: {baseline: {}, other: {system_prompt: "Mind: "}}
metrics: [double/characters]
execution: {max_concurrent: 2, retry: {initial_backoff_seconds: 0}}
"""
GAVE_UP = "the agent gave up on <b>this</b>"
SESSION = "the same"
PATIENCE = 60_000
"""Milliseconds: a run takes half a minute on a machine that does something else, too."""


def sent(response: httpx2.Response) -> Iterator[tuple[str, Any]]:
    """The events of a stream: what each is, and its data."""
    assert "text/event-stream; charset=utf-8" == response.headers["content-type"]
    fields: dict[str, str] = {}
    for line in response.iter_lines():
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "event" in fields:
            yield fields["event"], json.loads(fields["data"])
            fields = {}


def test_a_page_is_sent_all_parts_then_those_that_change_and_when_the_run_has_ended(copied: Path) -> None:
    path = f"/runs/hostile/{copied.name}/events"
    lines = (copied / "trials.jsonl").read_bytes().splitlines(keepends=True)
    (copied / "trials.jsonl").write_bytes(b"".join(lines[:5]))

    told = []
    with (
        viewing.served(copied.parents[1]) as running,
        client_of(running) as client,
        FileLock(copied / ".lock") as lock,
        client.stream("GET", path) as response,
    ):
        events = sent(response)
        first = {part["name"]: part["html"] for _, part in islice(events, 5)}
        with (copied / "trials.jsonl").open("ab") as file:
            file.write(b"".join(lines[5:]))
        for event, part in events:
            told.append(event if event == "ended" else part["name"])
            if "progress" in told:
                lock.release()

    assert {"progress", "arms", "troubles", "effects", "flight"} == first.keys()
    assert "5 <span" in first["progress"]
    assert "&lt;img src=x" in first["arms"]
    assert "<img" not in "".join(first.values())
    assert "ended" == told[-1]
    assert {"progress", "arms"} < {*told}
    assert "flight" not in told  # nothing of it has changed
    assert not (copied / ".watched").exists()


def test_the_page_of_an_interrupted_run_says_so_and_hears_when_it_goes_on(copied: Path) -> None:
    lines = (copied / "trials.jsonl").read_bytes().splitlines(keepends=True)
    (copied / "trials.jsonl").write_bytes(b"".join(lines[:5]))
    (copied / "summary.json").unlink()

    with viewing.served(copied.parents[1]) as running, client_of(running) as client:
        page = client.get(f"/runs/hostile/{copied.name}").text
        listed = client.get("/?state=interrupted").text
        with client.stream("GET", f"/runs/hostile/{copied.name}/events") as response, FileLock(copied / ".lock"):
            event, _ = next(sent(response))

    assert "Interrupted: 5 of 12 trials are there. <code" in page
    assert f">keval resume {copied}</code> goes on with it." in page
    assert copied.name in listed
    assert "begun" == event


def test_a_page_that_shows_a_run_as_running_is_told_that_it_has_ended(served: Serving, hostile_results: Path) -> None:
    (run,) = hostile_results.glob("*/*")

    with client_of(served) as client, client.stream("GET", f"{run_url(Run(run))}/events?running=yes") as response:
        events = [event for event, _ in sent(response)]

    assert ["ended"] == events


def test_a_page_has_all_parts_of_a_drawing_or_none(copied: Path) -> None:
    halfway, goes_on = threading.Event(), threading.Event()

    class Slow(UserDict[str, str]):
        def __iter__(self) -> Iterator[str]:
            yield "arms"
            halfway.set()
            assert goes_on.wait(10)
            yield "progress"

    def draw(seen: Seen) -> Slow:
        return Slow(arms="two", progress="all")

    async def looked_at() -> list[Mapping[str, str]]:
        following, run = Following(), Run(copied)
        waiting = asyncio.create_task(following.first(run, draw, 10))
        await asyncio.to_thread(halfway.wait, 10)
        early = await following.first(run, draw, 0)
        goes_on.set()
        return [early, await waiting]

    assert [{}, {"arms": "two", "progress": "all"}] == asyncio.run(looked_at())


@contextmanager
def started(project: Project) -> Iterator[subprocess.Popen[bytes]]:
    """A run in a process of its own, which is ended at the latest with the context."""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(ON_PATH)}
    command = [sys.executable, "-m", "keval", "run", "eval.yaml", "-q"]
    with subprocess.Popen(command, cwd=project.root, env=environ, stdout=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.terminate()


@pytest.mark.slow
@needs_chromium
def test_a_run_is_watched_from_its_first_trial_to_its_end(project: Project, visit: Callable[..., Page]) -> None:
    samples: list[dict[str, Any]] = [{"id": f"q{number}", "question": "Well?" * number} for number in range(1, 31)]
    samples[3] |= {"fail": GAVE_UP}
    samples[5] |= {"busy": 1}
    project.write(eval_yaml=CONFIG, questions_jsonl="".join(json.dumps(sample) + "\n" for sample in samples))
    results = project.root / "results"

    with viewing.served(results, SESSION) as running:
        page = visit(running, expected=["net::ERR"])
        expect(page.get_by_text("No runs under")).to_be_visible()
    port = int(running.base.rpartition(":")[2])

    with started(project):
        # The viewer was restarted, and pages that were open go on.
        with viewing.served(results, SESSION, port):
            expect(page.locator("td.state.running")).to_be_visible(timeout=PATIENCE)
            page.keyboard.press("j")
            page.keyboard.press("Enter")
            expect(page.locator("[data-part=flight] tbody tr").first).to_contain_text("scripted", timeout=PATIENCE)
            expect(page.locator("[data-part=troubles]")).to_contain_text(GAVE_UP, timeout=PATIENCE)
            expect(page.locator("[data-part=troubles]")).to_contain_text("repeated")
            page.locator("[data-part=effects] summary").first.click()
            drawn = page.locator("[data-part=progress]").inner_text()
            expect(page.locator("[data-part=progress]")).not_to_have_text(drawn, use_inner_text=True)
            expect(page.locator("[data-part=effects] details[open]")).to_have_count(1)
        expect(page.get_by_text("The connection is lost")).to_be_visible()
        with viewing.served(results, SESSION, port):
            expect(page.get_by_text("The connection is lost")).to_be_hidden(timeout=PATIENCE)
            expect(page.locator("#questions #found")).to_contain_text("30 questions", timeout=PATIENCE)
            page.locator("#list summary").filter(has_text="q4").first.click()
            expect(page.locator("#sample-q4 article").first).to_contain_text(GAVE_UP)
            page.reload()
            expect(page.locator("#sample-q4 article").first).to_contain_text(GAVE_UP, timeout=PATIENCE)
