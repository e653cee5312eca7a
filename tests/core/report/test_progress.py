"""The progress line."""

from __future__ import annotations

import io

from rich.console import Console

from keval.report.progress import Progress


def test_it_says_how_little_an_endpoint_bears_and_that_it_is_down() -> None:
    screen = io.StringIO()
    with Progress(Console(file=screen, force_terminal=True, width=200), trials=8) as progress:
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
