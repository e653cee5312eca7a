"""How long a page of 10,000 trials takes to be written, and to open in Chromium.

Two assistants answer 5,000 questions, scored by 14 metrics. A page is open when the browser has laid it out and answers
a click: from the start of the navigation until the first question shows its answers.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from measure import measure, part
from playwright.sync_api import Browser, sync_playwright
from recorded import prepare

TRIALS = part(10_000)
ROUNDS = part(5)
LIMIT = 2.0
CHROMIUM = shutil.which("chromium")


def opening(browser: Browser, file: Path) -> tuple[float, float]:
    """Return the seconds until the page is loaded, and until a question that is clicked shows its answers."""
    page = browser.new_page()
    page.goto(file.as_uri())
    loaded: float = page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd / 1000")
    clicked: float = page.evaluate(
        """() => new Promise((resolve) => {
            const held = document.querySelectorAll("script[id^=answers-]");
            const first = Math.min(...[...held].map((script) => Number(script.id.slice("answers-".length))));
            const details = document.querySelectorAll("#list > tr > td > details")[first];
            details.open = true;
            requestAnimationFrame(() => requestAnimationFrame(() => {
                if (!details.querySelector("article")) throw new Error("no answers are shown");
                resolve(performance.now() / 1000);
            }));
        })"""
    )
    page.close()
    return loaded, clicked


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder, TRIALS)
        keval = [sys.executable, "-m", "keval"]
        measure([*keval, "run", "eval.yaml", "-q"], folder)
        written = measure([*keval, "report", "latest", "--html", "page.html"], folder)
        file = folder / "page.html"
        print(f"a page of {TRIALS} trials: written in {written.wall:.1f} s, at most {written.peak:.0f} MiB of memory;")
        print(f"  {file.stat().st_size / 1e6:.1f} MB, wanted: transcripts of at most 20 MB")
        if CHROMIUM is None:
            print("  not opened, as there is no chromium; wanted: open in less than 2 s")
            return
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM)
            found = [opening(browser, file) for _ in range(ROUNDS)]
            browser.close()
    loaded, answered = (statistics.median(times) for times in zip(*found, strict=True))
    print(f"  loaded after {loaded:.2f} s, a question opened after {answered:.2f} s (median of {ROUNDS});", end=" ")
    print(f"wanted: less than {LIMIT:g} s")


if __name__ == "__main__":
    main()
