"""Photographs the page of `keval play` for the documentation, in Chromium.

    uv run python docs/pictures/play.py

Run it again when the page changes. The model is simulated, so that only seconds differ from one time to the next.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import expect, sync_playwright

ROOT = Path(__file__).parents[2]
PICTURE = Path(__file__).with_name("play.png")
CONFIG = ROOT / "examples" / "weather" / "weather.yaml"
# Five of the 14 metrics, so that the picture is short.
METRICS = ("accuracy", "action_planning", "adaptation_quality", "context_retention", "recommendation_quality")
QUESTIONS = ("I hate the cold. What's the weather in Helsinki?", "And on Friday?", "What should I wear in Oslo then?")


@contextmanager
def playing(folder: Path) -> Iterator[str]:
    """Start `keval play` and yield the URL that it prints; its runs are in `folder`."""
    metrics = [part for name in METRICS for part in ("--metric", f"weather/{name}")]
    options = ["--condition", "with_weather", *metrics, "--no-browser", "--port", "0", "-o", str(folder)]
    process = subprocess.Popen(
        [sys.executable, "-m", "keval", "play", str(CONFIG), *options], stdout=subprocess.PIPE, text=True
    )
    try:
        if process.stdout is None or not (url := process.stdout.readline().strip()):
            raise RuntimeError("keval play has ended without a URL")
        yield url
    finally:
        process.terminate()
        process.wait()


def photograph(url: str, picture: Path) -> None:
    """Ask a few questions, and photograph the page down to how the columns stand."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"))
        page = browser.new_page(viewport={"width": 1200, "height": 900}, color_scheme="light")
        page.goto(url)
        for question in QUESTIONS:
            expect(page.locator("#send")).to_be_enabled(timeout=60_000)
            page.get_by_role("textbox", name="Question").fill(question)
            page.keyboard.press("Enter")
            expect(page.locator("#latest .asked")).to_have_text(question, timeout=60_000)
            expect(page.locator("#status")).to_contain_text("All answers are there and scored", timeout=60_000)
        expect(page.locator("#send")).to_be_enabled(timeout=60_000)
        page.get_by_role("textbox", name="Question").blur()
        bottom = page.locator("#so-far").bounding_box()
        if bottom is None:
            raise RuntimeError("the page does not show how the columns stand")
        page.set_viewport_size({"width": 1200, "height": round(bottom["y"] + bottom["height"]) + 16})
        page.screenshot(path=picture)
        browser.close()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, playing(Path(folder)) as url:
        photograph(url, PICTURE)


if __name__ == "__main__":
    main()
