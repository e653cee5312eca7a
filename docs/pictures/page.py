"""Photographs the page of a run for the documentation, in Chromium.

    uv run python docs/pictures/page.py

Run it again when the page changes. The model is simulated, so that only seconds differ from one time to the next.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[2]
PICTURE = Path(__file__).with_name("page.png")
CONFIG = ROOT / "examples" / "weather" / "weather.yaml"
# Five of the 14 metrics, so that the picture is short.
METRICS = ("accuracy", "action_planning", "ambiguity_handling", "error_recovery", "recommendation_quality")


def written(folder: Path) -> Path:
    """Run the example, write its page into `folder` and return it. Raises CalledProcessError."""
    keval = [sys.executable, "-m", "keval"]
    metrics = [part for name in METRICS for part in ("--metric", f"weather/{name}")]
    subprocess.run([*keval, "run", str(CONFIG), "-q", "-o", str(folder), *metrics], check=True)
    file = folder / "page.html"
    subprocess.run([*keval, "report", "latest", "-o", str(folder), "--html", str(file)], check=True)
    return file


def photograph(file: Path, picture: Path) -> None:
    """Photograph the effects and the first questions of a page, one of them open."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"))
        page = browser.new_page(viewport={"width": 1200, "height": 900}, color_scheme="light")
        page.goto(file.as_uri())
        page.locator("#list summary").nth(2).click()
        page.wait_for_selector("#list article")
        page.evaluate("scrollTo(0, 0)")
        bottom = page.locator("#list > tr").nth(4).bounding_box()
        if bottom is None:
            raise RuntimeError("the page shows fewer than five questions")
        page.set_viewport_size({"width": 1200, "height": round(bottom["y"] + bottom["height"])})
        page.screenshot(path=picture)
        browser.close()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        photograph(written(Path(folder)), PICTURE)


if __name__ == "__main__":
    main()
