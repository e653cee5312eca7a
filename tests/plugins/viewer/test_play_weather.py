"""`keval play` on the weather example, as a user starts it: the real ADK, the real Agent Framework, the real server."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import attrs
import pytest
from playwright.sync_api import Page, expect

from keval import open_run
from keval_viewer.app import Serving
from tests.viewing import needs_chromium

pytestmark = [pytest.mark.slow, needs_chromium]

EXAMPLE = Path(__file__).parents[3] / "examples" / "weather" / "weather.yaml"
COLUMNS = ("gadk/with_weather", "ms/with_weather")


@attrs.frozen
class Started:
    """The command in a process of its own, and where it keeps what is asked."""

    serving: Serving
    process: subprocess.Popen[str]
    results: Path

    def interrupt(self) -> str:
        """End it with Ctrl-C; returns what it says last."""
        self.process.send_signal(signal.SIGINT)
        told, _ = self.process.communicate(timeout=60)
        return told


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Started]:
    """`keval play`, with a simulated model that writes slowly enough to be watched."""
    options = ["--condition", "with_weather", "--budget", "trials=40", "--no-browser", "--port", "0"]
    environ = {**os.environ, "KEVAL_GATEWAY_PAUSE_MS": "150"}
    process = subprocess.Popen(
        [sys.executable, "-m", "keval", "play", str(EXAMPLE), *options, "-o", str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env=environ,
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        parts = urlsplit(url)
        yield Started(Serving(f"{parts.scheme}://{parts.netloc}", parse_qs(parts.query)["token"][0]), process, tmp_path)
    finally:
        process.kill()
        process.wait()


def ask(page: Page, text: str) -> None:
    expect(page.locator("#send")).to_be_enabled(timeout=60_000)
    page.get_by_role("textbox", name="Question").fill(text)
    page.keyboard.press("Enter")
    expect(page.locator("#latest .asked")).to_have_text(text, timeout=30_000)


def settle(page: Page, told: str = "All answers are there and scored") -> None:
    expect(page.locator("#status")).to_contain_text(told, timeout=60_000)


def cell(page: Page, column: str) -> str:
    return f"#latest article[data-key='{column}']"


def test_two_frameworks_answer_side_by_side(started: Started, visit: Callable[..., Page]) -> None:
    page = visit(started.serving)
    assert "Simulated model" in page.locator("#simulated").inner_text()
    expect(page.locator("#session")).to_contain_text("budget 40 answers")

    # Streamed, with tool calls as they happen; a reload in the middle loses nothing.
    ask(page, "I hate the cold. What's the weather in Helsinki?")
    writing = page.locator("[data-writing]").first
    expect(writing).to_have_text(re.compile(r"\w{3}.{20,}"), timeout=60_000)
    before = writing.get_attribute("data-writing"), writing.inner_text()
    page.reload()
    again = page.locator(f"[data-writing='{before[0]}'], #latest .answer").first
    assert again.inner_text().startswith(before[1])
    settle(page)
    for column in COLUMNS:
        calls = page.locator(f"{cell(page, column)} .call")
        assert ["weather"] * calls.count() == calls.locator("bdi").all_inner_texts()
        expect(calls.filter(has_text="get_current_weather(Helsinki)")).to_have_text(re.compile(r"\d+ ms|\d\.\d s"))
        expect(page.locator(f"{cell(page, column)} .grade.scored").first).to_contain_text("accuracy")
        assert 14 == page.locator(f"{cell(page, column)} .grade").count()

    # A second turn remembers the place, and what the user said.
    ask(page, "And tomorrow?")
    settle(page)
    for column in COLUMNS:
        expect(
            page.locator(f"{cell(page, column)} .call").filter(has_text="get_weather_forecast(Helsinki")
        ).to_have_count(1)
        expect(page.locator(f"{cell(page, column)} .grade", has_text="context retention")).not_to_contain_text(
            "neutral"
        )
    expect(page.locator("#so-far h2")).to_have_text("So far: 2 questions")
    expect(page.locator("#so-far")).to_contain_text(re.compile("cannot tell any|no difference so far"))

    # An answer leads to its trial.
    page.locator(f"{cell(page, 'gadk/with_weather')} .facts a").click()
    expect(page.locator("main")).to_contain_text("And tomorrow?")
    page.wait_for_load_state("networkidle")  # else the page tells of scripts and styles that it did not get

    told = started.interrupt()
    run = open_run("latest", started.results)
    assert (0, f"kept in {run.path}" in told) == (started.process.returncode, True)
    assert {f"{column}/{sample}/1" for column in COLUMNS for sample in ("q1", "q1.2")} == run.trial_ids()
    assert run.written_summary() is not None
