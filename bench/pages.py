"""How long the viewer's pages of a run of 10,000 trials take in Chromium, and what they leave in the server's memory.

Two assistants answer 5,000 questions, scored by 14 metrics. A page is there when it shows something, from the start of
the navigation on; filtering and scrolling take until the frame in which the rows are those that were asked for.
"""

from __future__ import annotations

import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from measure import measure, part
from playwright.sync_api import Page, sync_playwright
from recorded import prepare

TRIALS = part(10_000)
ROUNDS = part(7)
LOADS = part(200)
TRIAL = "gadk/baseline/7/1"
PAINTED = """() => new Promise((resolve) => new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) if (entry.name === "first-contentful-paint") resolve(entry.startTime);
}).observe({ type: "paint", buffered: true }))"""
FILTERED = """async ([name, value]) => {
    const field = document.forms.filters.elements[name];
    const started = performance.now();
    field.value = value;
    field.dispatchEvent(new Event("input", { bubbles: true }));
    await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    return performance.now() - started;
}"""
SORTED = """async (name) => {
    const started = performance.now();
    document.querySelector(`th[data-sort=${name}] button`).click();
    await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    return performance.now() - started;
}"""
SCROLLED = """async () => {
    const frame = document.getElementById("frame");
    const times = [];
    for (let step = 1; step <= 40; step += 1) {
        const started = performance.now();
        frame.scrollTop = (frame.scrollHeight / 40) * step;
        await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
        times.push(performance.now() - started);
        if (frame.querySelectorAll("tbody tr:not(.spacer)").length === 0) throw new Error("no rows");
    }
    return Math.max(...times);
}"""


@contextmanager
def viewer(folder: Path) -> Iterator[tuple[str, int]]:
    """Serve the runs of a folder, and yield the URL that lets a browser in, and the server's process."""
    command = [sys.executable, "-m", "keval", "view", "--no-browser", "--port", "0"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip(), process.pid
        finally:
            process.terminate()


def memory(process: int) -> float:
    """Return the memory that a process holds, in MiB."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) / 1024


def painted(page: Page, url: str) -> float:
    """Return the milliseconds until a page shows what it came with."""
    page.goto(url, wait_until="commit")
    taken: float = page.evaluate(PAINTED)
    page.wait_for_load_state("networkidle")  # the next page is not opened while this one still fetches its parts
    return taken


def median(page: Page, url: str) -> str:
    first, *others = (painted(page, url) for _ in range(ROUNDS + 1))
    return f"{first:.0f} ms the first time, then {statistics.median(others):.0f} ms"


def main() -> None:
    chromium = shutil.which("chromium")
    if chromium is None:
        print("nothing measured, as there is no chromium; wanted: a page in less than 300 ms")
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder, TRIALS)
        measure([sys.executable, "-m", "keval", "run", "eval.yaml", "-q"], folder)
        (run,) = (folder / "results").glob("*/*")
        with viewer(folder) as (url, process), sync_playwright() as playwright:
            base, path = url.partition("/?")[0], f"/runs/{run.parent.name}/{run.name}"
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            page = browser.new_page()
            page.goto(url)
            begun = memory(process)
            print(f"pages of a run of {TRIALS:,} trials, shown after (median of {ROUNDS}); wanted: less than 300 ms")
            print(f"  the runs {median(page, f'{base}/')}")
            print(f"  the run {median(page, f'{base}{path}')}")
            print(f"  its trials {median(page, f'{base}{path}/trials')}")
            page.goto(f"{base}{path}/trials")
            page.wait_for_selector("#frame.virtual")
            print(f"  a trial {median(page, f'{base}{path}/trials/{TRIAL}')}")
            page.goto(f"{base}{path}/trials")
            page.wait_for_selector("#frame.virtual")
            typed = [page.evaluate(FILTERED, ["q", word]) for word in ("o", "os", "osl", "oslo", "oslo rain", "")]
            chosen = [page.evaluate(FILTERED, ["agent", agent]) for agent in ("ms", "gadk", "")]
            ordered = [page.evaluate(SORTED, column) for column in ("score", "score", "seconds", "sample")]
            print(f"the table of {TRIALS:,} trials, until the next frame but one; wanted: less than 100 ms")
            print(f"  typing a letter {max(typed):.0f} ms at most, choosing an agent {max(chosen):.0f} ms at most,")
            print(
                f"  sorting {max(ordered):.0f} ms at most, scrolling to another place {page.evaluate(SCROLLED):.0f} ms"
            )
            pages = [f"{base}/", f"{base}{path}", f"{base}{path}/trials", f"{base}{path}/answers/7"]
            for seen in pages * 3:
                page.goto(seen, wait_until="networkidle" if seen.endswith(run.name) else "load")
            warm = memory(process)
            for number in range(LOADS):
                page.goto(pages[number % len(pages)])
            grown = memory(process) - warm
            browser.close()
    print(f"memory of the server: {begun:.0f} MiB with nothing read, {warm:.0f} MiB after every page was seen;")
    print(f"  {grown:+.1f} MiB over {LOADS} further pages; wanted: flat")


if __name__ == "__main__":
    main()
