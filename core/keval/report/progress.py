"""Live progress of a run, as a hook plugin that counts trials and scores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Display

from keval.hookspecs import hookimpl
from keval.manifest import Manifest
from keval.records import Trial
from keval.report.terminal import foreign
from keval.scores import ScoreLine

__all__ = ["Progress"]


class Progress:
    """Shows trials done and failed, and trials scored, with rates and the time left. Use as a context manager."""

    def __init__(self, console: Console, trials: int, done: int = 0) -> None:
        self.directory: Path | None = None
        self._display = Display(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("{task.fields[failed]} failed"),
            TextColumn("{task.fields[rate]}"),
            TextColumn("{task.fields[pace]}", style="yellow"),
            TimeRemainingColumn(),
            console=console,
            disable=console.quiet or not console.is_terminal,
            transient=True,
        )
        self._total = trials
        self._done = self._finished = done
        self._failed = 0
        self._paces: dict[str, str] = {}
        self._answering = self._task("preflight", trials) if trials else None
        self._scoring: TaskID | None = None
        self._is_late = False

    @property
    def scoring(self) -> bool:
        """Whether every trial has been run, so that only scores are lacking."""
        return 0 < self._total == self._finished

    def __enter__(self) -> Progress:
        self._display.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        """Show nothing more; safe to call again."""
        self._display.stop()

    @hookimpl
    def keval_run_started(self, directory: Path, manifest: Manifest) -> None:
        self.directory = directory
        if self._answering is not None:
            self._display.reset(self._answering, completed=self._done, description="trials", failed=0, rate="", pace="")

    @hookimpl
    def keval_trial_finished(self, trial: Trial) -> None:
        self._finished += 1
        self._failed += trial.failure is not None
        if self._answering is not None:
            self._advance(self._answering, self._failed)

    @hookimpl
    def keval_endpoint_changed(self, model: str, at_once: int | None, down: bool) -> None:
        self._paces[model] = f"{model} is down" if down else f"{model}: {at_once} at once" if at_once else ""
        task = self._scoring if self.scoring or self._answering is None else self._answering
        if task is not None and not self._display.disable:
            self._display.update(task, pace=foreign(", ".join(filter(None, self._paces.values()))))

    @hookimpl
    def keval_trial_scored(self, trial: Trial, scores: Sequence[ScoreLine], late: bool) -> None:
        if late and not self._is_late:
            self._is_late, self._scoring = True, self._task("judgements", self._total - self._failed)
        if self._scoring is None:
            self._scoring = self._task("scores", self._total or None)
        self._advance(self._scoring, 0)

    def _task(self, description: str, total: int | None) -> TaskID:
        return self._display.add_task(description, total=total, failed=0, rate="", pace="")

    def _advance(self, task: TaskID, failed: int) -> None:
        if self._display.disable:
            return
        speed = self._display.tasks[task].speed
        self._display.update(task, advance=1, failed=failed, rate=f"{speed:.1f}/s" if speed else "")
