"""The progress line."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

import keval
from keval.report.progress import Progress

RUN = Path(__file__).parents[2] / "runs" / "0.1.0" / "20261122-063743-c6a2"


def test_it_says_how_little_an_endpoint_bears_and_that_it_is_down() -> None:
    screen = io.StringIO()
    with Progress(Console(file=screen, force_terminal=True, width=200), trials=8) as progress:
        progress.keval_run_started(Path("results"), keval.open_run(RUN).manifest)
        progress.keval_endpoint_changed("gpt-test", 3, down=False)
        progress.keval_endpoint_changed("claude-\x1b[2Jtest", None, down=True)
        progress._display.refresh()
        shown = screen.getvalue()
        progress.keval_endpoint_changed("gpt-test", None, down=False)
        progress.keval_endpoint_changed("claude-\x1b[2Jtest", None, down=False)
        screen.truncate(0)
        progress._display.refresh()

    assert "gpt-test: 3 at once, claude-\ufffd[2Jtest is down" in shown
    assert "gpt-test" not in screen.getvalue()
