"""`keval run`: an evaluation from its file to its table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from keval.cli.call import CommandCall, CommandOptions, Planned, added_options
from keval.cli.config_argument import read_config
from keval.cli.display import Progress, display, tell_notices
from keval.cli.help import SectionedCommand
from keval.cli.messages import redactor
from keval.cli.options import Detail, output_options, selection_options
from keval.cli.session import carry_out, finish, log_watchers, prepared, tell_replaced
from keval.errors import typed
from keval.run.select import Selection, select


@click.command("run", cls=SectionedCommand)
# Not by `config_argument`, as an option of a package, such as --replay, may say what is run.
@click.argument("config", type=click.Path(path_type=Path), required=False)
@selection_options
@click.option("--dry-run", is_flag=True, help="Print what would run, and run nothing.")
@added_options("run")
@output_options
def command(
    *,
    config: Path | None,
    selection: Selection,
    dry_run: bool,
    added: Mapping[CommandOptions, Mapping[str, Any]],
    output_dir: Path,
    detail: Detail,
    as_json: bool,
    quiet: bool,
    log_format: str,
) -> None:
    """Run the evaluation in the file CONFIG and show what its contexts do.

    Without CONFIG, it is `eval.yaml` or `keval.yaml` of this folder, as for every command that takes a config.
    Trials and scores are kept in a new directory under the results directory, which `keval report`, `show` and
    `score` read.
    """
    log, hidden = log_watchers(log_format), redactor()
    with (
        CommandCall.begun(added, root=output_dir, config=config, selection=selection) as call,
        (call.planned or _of_config)(call) as planned,
    ):
        plan = planned.plan
        tell_notices(plan, quiet=quiet)
        if dry_run:
            display().show_plan(plan, as_json=as_json)
            return

        # It imports what runs trials, which neither `--help` nor `--dry-run` needs.
        from keval.run.active_run import RunOptions

        progress = display().progress(plan.trial_count, quiet=quiet)
        watchers = [("keval/progress", progress), *log, *call.watchers]
        options = RunOptions(watchers, hidden, record=call.record, given=call.given)
        run, summary = carry_out(
            planned.run(plan, output_dir, options),
            progress,
            lambda: _interrupted(progress, planned.again),
            stop=options.stop,
            grace=plan.evaluation.execution.grace_seconds,
        )
        tell_replaced(hidden.replaced, quiet=quiet)
        finish(run, summary, call.given, detail=detail, as_json=as_json, quiet=quiet)


@contextmanager
def _of_config(call: CommandCall) -> Iterator[Planned]:
    from keval.plan.build import make_plan
    from keval.run.flow import run_plan

    evaluation = prepared(call.changed(select(read_config(call.config), call.selection or Selection())))
    yield Planned(make_plan(evaluation), run_plan)


def _interrupted(progress: Progress, again: str | None) -> str:
    """Say where what was finished is, and which command goes on."""
    if progress.directory is None:
        return "interrupted"
    goes_on = again or f"`{typed('score' if progress.scoring else 'resume', progress.directory)}` continues it"
    return f"interrupted; finished trials are in {progress.directory}; {goes_on}"
