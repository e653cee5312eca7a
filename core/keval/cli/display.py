"""What commands show of a run: by the package that has a display, or else plainly, as counts and means."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, Protocol

import click

from keval.cli.messages import foreign, tell
from keval.cli.options import Detail
from keval.plan.plan import Plan
from keval.records.formats import counted, number
from keval.records.manifest import Manifest
from keval.records.trial import Trial
from keval.run.conclusion import PlainSummary
from keval.seams import registry
from keval.seams.hooks import hookimpl
from keval.store.run import Run

_MOST = 20
"""How many notices are told."""


class Progress(Protocol):
    """A hook plugin that shows how far a run is, while its block runs."""

    directory: Path | None
    finished: int

    @property
    def scoring(self) -> bool:
        """Whether every trial has been run, so that only scores are lacking."""
        ...

    def __enter__(self) -> Any: ...

    def __exit__(self, *raised: Any, **_: Any) -> Any: ...

    def stop(self) -> None:
        """Show nothing more; safe to call again."""
        ...

    def beat(self) -> None:
        """Say that the run goes on."""
        ...


class Display(Protocol):
    """Shows what commands do. Group `keval.displays`; keval asks for the name `terminal`."""

    def progress(self, trials: int, done: int = 0, *, quiet: bool = False) -> Progress:
        """Return what shows the progress of so many trials, some of which are done already."""
        ...

    def event_log(self) -> object:
        """Return the hook plugin that writes each event of a run as a line of JSON."""
        ...

    def show_plan(self, plan: Plan, *, as_json: bool) -> None:
        """Print what a run would do."""
        ...

    def show_end(self, run: Run, summary: Any, code: int, *, as_json: bool, detail: Detail, quiet: bool) -> None:
        """Print what was found in a run that ends with this exit code."""
        ...


def display() -> Display:
    """Return the display that is installed, or a plain one."""
    if not registry.has("keval.displays", "terminal"):
        return _Plain()
    found: Display = registry.load(registry.find("keval.displays", "terminal"))
    return found


def tell_notices(plan: Plan, *, quiet: bool = False) -> None:
    """Tell the plan's notices, each with its place: the first 20, and how many more; and what has no equivalent."""
    from keval.cli.console import message_console, safe  # with Rich, which `--help` does not need

    console = message_console(quiet=quiet)
    for notice in plan.notices[:_MOST]:
        console.print(safe(f"note: {notice}", "yellow"), soft_wrap=True)
    if (more := len(plan.notices) - _MOST) > 0:
        console.print(f"note: {more} more like these", soft_wrap=True)
    if unmatched := plan.evaluation.unmatched:
        table = "".join(f"\n  {place:<40}  {told}" for place, told in unmatched)
        console.print(safe(f"what has no equivalent in keval:{table}", "yellow"), soft_wrap=True)


class _Plain:
    """Shows counts and means."""

    def progress(self, trials: int, done: int = 0, *, quiet: bool = False) -> Progress:
        return _PlainProgress(trials, done, quiet=quiet)

    def event_log(self) -> object:
        return registry.find("keval.displays", "terminal")  # raises, and says which package has it

    def show_plan(self, plan: Plan, *, as_json: bool) -> None:
        click.echo(foreign(f"{plan.evaluation.name}: {counted(plan.trial_count, 'trial')}; nothing was run"))

    def show_end(self, run: Run, summary: Any, code: int, *, as_json: bool, detail: Detail, quiet: bool) -> None:
        if isinstance(summary, PlainSummary) and as_json:
            from keval.cli.console import print_json  # with Rich

            print_json(summary.data())
        elif isinstance(summary, PlainSummary) and not quiet:
            for arm in summary.arms:
                click.echo(foreign(f"{arm.agent} {arm.condition}: {counted(arm.trials, 'trial')}, {arm.failed} failed"))
                for (metric, judge), mean in arm.means.items():
                    click.echo(foreign(f"  {metric}{f' by {judge}' if judge else ''}: {number(mean)}"))
        tell(str(run.path))


class _PlainProgress:
    """Tells how many trials are done whenever a beat is due."""

    def __init__(self, trials: int, done: int, *, quiet: bool) -> None:
        self.directory: Path | None = None
        self.finished = 0
        self._trials, self._done, self._quiet = trials, done, quiet

    @property
    def scoring(self) -> bool:
        return 0 < self._trials == self._done + self.finished

    def __enter__(self) -> _PlainProgress:
        return self

    def __exit__(self, *raised: object) -> Literal[False]:
        return False

    def stop(self) -> None:
        self._quiet = True

    def beat(self) -> None:
        if not self._quiet:
            tell(f"still at work: {self._done + self.finished} of {counted(self._trials, 'trial')} done")

    @hookimpl
    def keval_run_started(self, directory: Path, manifest: Manifest) -> None:
        self.directory = directory

    @hookimpl
    def keval_trial_finished(self, trial: Trial) -> None:
        self.finished += 1
