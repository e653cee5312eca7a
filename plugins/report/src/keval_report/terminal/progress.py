"""A run while it goes on, as hook plugins: a progress display, and events as lines of JSON."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType

import attrs
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress as Display, TaskID, TextColumn, TimeRemainingColumn

from keval.cli.console import safe
from keval.cli.messages import foreign, log_event, logs_json, tell
from keval.records.formats import number
from keval.records.manifest import Manifest, WorkerEntry
from keval.records.scores import ScoreLine
from keval.records.trial import Failure, Trial
from keval.seams.hooks import hookimpl
from keval_analysis.findings.summary import Summary
from keval_report.totals import start_notice
from keval_report.words import picked

_LONG = 20.0
"""Seconds without a finished trial or score after which a heartbeat says so."""


class Progress:
    """Shows trials done and failed, and trials scored, with rates and the time left. Use as a context manager."""

    def __init__(
        self, console: Console, trials: int, done: int = 0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.directory: Path | None = None
        self.finished = 0
        self._clock = clock
        self._scored = 0
        self._last = clock()
        self._troubles: dict[str, tuple[str, float]] = {}
        self._noted: set[str] = set()
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
        self._done = done
        self._failed = 0
        self._paces: dict[str, str] = {}
        self._workers: dict[str, WorkerEntry] = {}
        self._answering = self._task("preflight", trials) if trials else None
        self._scoring: TaskID | None = None
        self._is_late = False

    @property
    def scoring(self) -> bool:
        """Whether every trial has been run, so that only scores are lacking."""
        return 0 < self._total == self._done + self.finished

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
        left = (self._total - self._done) / (self._total or 1)
        if (told := start_notice(manifest.server_starts, left)) is not None:
            self._display.console.print(safe(f"note: {told}", "yellow"), soft_wrap=True)
        if self._answering is not None:
            # The clock of the display starts anew, as bringing up is no part of the rate.
            self._display.reset(self._answering, completed=self._done, description="trials", failed=0, rate="", pace="")

    @hookimpl
    def keval_trial_finished(self, trial: Trial) -> None:
        self.finished, self._last = self.finished + 1, self._clock()
        self._failed += trial.failure is not None
        if self._answering is not None:
            self._advance(self._answering, self._failed)

    @hookimpl
    def keval_endpoint_changed(self, model: str, at_once: int | None, down: bool, trouble: str | None) -> None:
        self._paces[model] = f"{model} is down" if down else f"{model}: {at_once} at once" if at_once else ""
        self._tell_paces()
        if trouble is None:
            self._troubles.pop(model, None)
            return
        # The time of the first one stays, so that the whole wait is told.
        self._troubles[model] = trouble, self._troubles.get(model, (trouble, self._clock()))[1]
        for told in (trouble, f"{trouble}; it is down, and one request at a time tries it" if down else trouble):
            # An endpoint may fail and recover many times, and each trouble is told once.
            if told not in self._noted:
                self._noted.add(told)
                tell(f"note: {told}")  # also if it is to be quiet: it may wait for minutes

    def beat(self) -> None:
        """Say how far the run is and what it waits for, if there is neither a terminal nor a wish for quiet."""
        if self._display.console.is_terminal or self._display.console.quiet:
            return
        now = self._clock()
        waiting = [f"{round(now - since)} s, as {trouble}" for trouble, since in self._troubles.values()]
        if not waiting and self.directory is not None and now - self._last >= _LONG:
            following = "trial" if self._answering is not None and not self.scoring else "score"
            waiting = [f"{round(now - self._last)} s for the next {following}"]
        begun, finished = self.directory is not None, self._done + self.finished
        if logs_json():
            counts = {"trials": self._total, "finished": finished, "failed": self._failed, "scored": self._scored}
            log_event("heartbeat", **counts, begun=begun, waiting=waiting)
            return
        scored = f"{self._scored} scored"
        done = f"{finished} of {self._total} trials done, {self._failed} failed, {scored}"
        told = (done if self._total else scored) if begun else "bringing up what the run needs"
        tell("; ".join([f"still at work: {told}", *(f"waiting {each}" for each in waiting)]))

    @hookimpl
    def keval_worker_changed(self, worker: WorkerEntry) -> None:
        before, self._workers[worker.name] = self._workers.get(worker.name), worker
        if worker.lost is not None and (before is None or before.lost is None):
            told = f"note: {worker.name} on {worker.node} was lost, and its trials go to others: {worker.lost}"
            self._display.console.print(safe(told, "yellow"), soft_wrap=True)
        up = sum(each.lost is None for each in self._workers.values())
        lost = len(self._workers) - up
        self._paces["workers"] = f"{up} workers" + (f", {lost} lost" if lost else "")
        self._tell_paces()

    def _tell_paces(self) -> None:
        task = self._scoring if self.scoring or self._answering is None else self._answering
        if task is not None and not self._display.disable:
            self._display.update(task, pace=foreign(", ".join(filter(None, self._paces.values()))))

    @hookimpl
    def keval_trial_scored(self, trial: Trial, scores: Sequence[ScoreLine], late: bool) -> None:
        self._scored, self._last = self._scored + (not late), self._clock()
        if late and not self._is_late:
            self._is_late, self._scoring = True, self._task("judgements", self._total - self._failed)
        if self._scoring is None:
            # A run that is only scored has no planned trials, and `None` shows no share of them.
            self._scoring = self._task("scores", self._total or None)
        self._advance(self._scoring, 0)

    def _task(self, description: str, total: int | None) -> TaskID:
        return self._display.add_task(description, total=total, failed=0, rate="", pace="")

    def _advance(self, task: TaskID, failed: int) -> None:
        if self._display.disable:
            return
        speed = self._display.tasks[task].speed
        self._display.update(task, advance=1, failed=failed, rate=f"{number(speed, 1)}/s" if speed else "")


class EventLog:
    """Writes what happens in a run, each event when it happens. docs/config.md tells the fields."""

    @hookimpl
    def keval_run_started(self, directory: Path, manifest: Manifest) -> None:
        log_event(
            "run_started",
            run=manifest.run,
            directory=str(directory),
            **picked(manifest, "evaluation", "trials"),
            agents=list(manifest.agents),
            conditions=list(manifest.conditions),
            simulated=list(manifest.simulated),
            replayed=manifest.replay and manifest.replay.run,
        )

    @hookimpl
    def keval_trial_finished(self, trial: Trial) -> None:
        log_event(
            "trial_finished",
            trial=trial.id,
            **picked(trial, "agent", "condition"),
            sample=trial.sample.id,
            repetition=trial.repetition,
            seconds=trial.transcript.duration if trial.transcript else None,
            attempts_before=len(trial.attempts),
            failure=_failure(trial.failure),
        )

    @hookimpl
    def keval_endpoint_changed(self, model: str, at_once: int | None, down: bool, trouble: str | None) -> None:
        log_event("endpoint_changed", model=model, at_once=at_once, down=down, trouble=trouble)

    @hookimpl
    def keval_worker_changed(self, worker: WorkerEntry) -> None:
        known = attrs.filters.exclude(attrs.fields(WorkerEntry).extra)
        log_event("worker_changed", **attrs.asdict(worker, filter=known))

    @hookimpl
    def keval_trial_scored(self, trial: Trial, scores: Sequence[ScoreLine], late: bool) -> None:
        told = [
            {
                **picked(line, "metric", "judge"),
                "judge_repetition": line.judgement.repetition if line.judgement else None,
                **picked(line.score, "value", "neutral"),
                "failure": _failure(line.failure),
            }
            for line in scores
        ]
        log_event("trial_scored", trial=trial.id, scores=told, late=late)

    @hookimpl
    def keval_run_finished(self, directory: Path, summary: Summary) -> None:
        log_event(
            "run_finished",
            run=summary.run,
            directory=str(directory),
            planned=summary.planned,
            trials=sum(arm.trials for arm in summary.trials),
            failed=sum(arm.failed for arm in summary.trials),
            scores_failed=sum(arm.failed for arm in summary.arms),
            scores_missing=sum(arm.missing for arm in summary.arms),
            elapsed=summary.elapsed,
            stopped=summary.stopped,
        )


def _failure(failure: Failure | None) -> dict[str, object] | None:
    """Describe a failure without its traceback, which the run's files have."""
    if failure is None:
        return None
    return attrs.asdict(failure, filter=attrs.filters.exclude(attrs.fields(Failure).traceback))
