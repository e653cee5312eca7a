"""`keval run`: an evaluation from its file to its table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import click

from keval.cli.interruption import Interruption
from keval.cli.options import (
    GateFlags,
    gate_options,
    json_option,
    log_format_option,
    quiet_option,
    results_option,
    selection_options,
    wide_option,
)
from keval.cli.session import ablated, finish, log_watchers, run_to_end, tell_replaced
from keval.config.load import load
from keval.config.secrets import learn_config
from keval.config.select import Selection, select
from keval.execute.stopping import Stop
from keval.report.console import data_console, message_console, print_json
from keval.report.plan import describe, print_notices, print_plan
from keval.report.terminal import redactor, tell

if TYPE_CHECKING:  # it imports what a dry run does not need
    from keval.report.progress import Progress

__all__ = ["command"]


@click.command("run")
@click.argument("config", type=click.Path(path_type=Path))
@selection_options
@gate_options
@click.option("--dry-run", is_flag=True, help="Print what would run, and run nothing.")
@click.option("--record", is_flag=True, help="Keep the traffic with models and servers, so that it can be replayed.")
@results_option
@wide_option
@json_option
@quiet_option
@log_format_option
def command(
    *,
    config: Path,
    selection: Selection,
    gate_flags: GateFlags,
    dry_run: bool,
    record: bool,
    output_dir: Path,
    wide: bool,
    as_json: bool,
    quiet: bool,
    log_format: str,
) -> None:
    """Run the evaluation in the file CONFIG and show what its contexts do.

    Trials and scores are kept in a new directory under the results directory, which `keval report`, `show` and
    `score` read.
    """
    from keval.plan.build import make_plan

    log = log_watchers(log_format)
    evaluation = load(config)
    learn_config(redactor(), evaluation)
    plan = make_plan(ablated(select(evaluation, attrs.evolve(selection, gates=gate_flags.gates))))
    regression = gate_flags.regression(output_dir)
    messages = message_console(quiet=quiet)
    print_notices(plan, messages)
    if dry_run:
        if as_json:
            print_json(describe(plan))
        else:
            print_plan(plan, data_console())
        return

    from keval.pipeline import run_plan
    from keval.report.progress import Progress

    progress, stop = Progress(messages, plan.trial_count), Stop()

    def interrupted() -> None:
        progress.stop()
        tell(_interrupted(progress))

    interruption = Interruption(stop, plan.evaluation.execution.grace_seconds, interrupted)
    try:
        with progress:
            hidden = redactor()
            watchers = [("keval/progress", progress), *log]
            work = run_plan(
                plan, output_dir, watchers, redactor=hidden, stop=stop, regression=regression, record=record
            )
            run, summary = run_to_end(work, interruption)
    except KeyboardInterrupt:
        interrupted()
        raise SystemExit(130) from None
    tell_replaced(hidden.replaced, quiet=quiet)
    finish(run, summary, wide=wide, as_json=as_json, quiet=quiet, strict=gate_flags.strict)


def _interrupted(progress: Progress) -> str:
    """Say where what was finished is, and which command goes on."""
    if progress.directory is None:
        return "interrupted"
    command = "score" if progress.scoring else "resume"
    return f"interrupted; what was finished is in {progress.directory}; `keval {command} {progress.directory}` goes on"
