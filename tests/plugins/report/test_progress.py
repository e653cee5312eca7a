"""The progress line."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

import keval
from keval_report.terminal.progress import Progress

RUN = Path(__file__).parents[2] / "runs" / "0.1.0" / "20261122-063743-c6a2"


def test_it_says_how_little_an_endpoint_bears_and_that_it_is_down() -> None:
    screen = io.StringIO()
    with Progress(Console(file=screen, force_terminal=True, width=200), trials=8) as progress:
        progress.keval_run_started(Path("results"), keval.open_run(RUN).manifest)
        progress.keval_endpoint_changed("gpt-test", 3, down=False, trouble=None)
        progress.keval_endpoint_changed("claude-\x1b[2Jtest", None, down=True, trouble=None)
        progress._display.refresh()
        shown = screen.getvalue()
        progress.keval_endpoint_changed("gpt-test", None, down=False, trouble=None)
        progress.keval_endpoint_changed("claude-\x1b[2Jtest", None, down=False, trouble=None)
        screen.truncate(0)
        progress._display.refresh()

    assert "gpt-test: 3 at once, claude-\ufffd[2Jtest is down" in shown
    assert "gpt-test" not in screen.getvalue()


def test_scores_are_counted_beside_the_trials_and_late_judgements_apart() -> None:
    screen = io.StringIO()
    run = keval.open_run(RUN)
    trials = [*run.trials()][:3]
    with Progress(Console(file=screen, force_terminal=True, width=200), trials=3) as progress:
        progress.keval_run_started(Path("results"), run.manifest)
        for trial in trials[:2]:
            progress.keval_trial_finished(trial)
        progress.keval_trial_scored(trials[0], (), late=False)
        progress._display.refresh()
        meanwhile, is_scoring = screen.getvalue(), progress.scoring
        progress.keval_trial_finished(trials[2])
        for trial in trials[1:]:
            progress.keval_trial_scored(trial, (), late=False)
        progress.keval_trial_scored(trials[0], (), late=True)
        screen.truncate(0)
        progress._display.refresh()
        late = screen.getvalue()

    assert [True, True, False] == ["2/3" in meanwhile, "1/3" in meanwhile, is_scoring]
    assert (True, [True] * 3) == (progress.scoring, [name in late for name in ("trials", "scores", "judgements")])
    assert (2, 1) == (late.count("3/3"), late.count("1/3"))
