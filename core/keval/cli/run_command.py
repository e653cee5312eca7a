"""`keval run`: an evaluation from its file to its table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import attrs
import click

from keval.cli.console import data_console, message_console, print_json
from keval.cli.messages import redactor
from keval.cli.options import Detail, GateFlags, gate_options, output_options, selection_options, view_option
from keval.cli.session import ablated, carry_out, finish, log_watchers, tell_replaced
from keval.config.load import load
from keval.config.secrets import learn_config
from keval.run.select import Selection, select
from keval.store.run import find_run
from keval_report.terminal.planning import describe, print_notices, print_plan

if TYPE_CHECKING:  # it imports what a dry run does not need
    from keval.plan.plan import Plan
    from keval.run.active_run import Watchers
    from keval_replay.replay_plan import Replay
    from keval_report.terminal.progress import Progress


@click.command("run")
@click.argument("config", type=click.Path(path_type=Path), required=False)
@selection_options
@gate_options
@click.option("--dry-run", is_flag=True, help="Print what would run, and run nothing.")
@click.option("--record", is_flag=True, help="Record the traffic with models and servers, for --replay.")
@click.option(
    "--replay",
    metavar="RUN",
    help="Replay the recording of RUN, and call no model and no server; without CONFIG, with the config of RUN.",
)
@click.option(
    "--replay-misses",
    type=click.Choice(["fail", "live"]),
    default="fail",
    show_default=True,
    help="What to do with a trial whose request is not in the recording.",
)
@view_option
@output_options
def command(
    *,
    config: Path | None,
    selection: Selection,
    gate_flags: GateFlags,
    dry_run: bool,
    record: bool,
    replay: str | None,
    replay_misses: Literal["fail", "live"],
    viewers: Watchers,
    output_dir: Path,
    detail: Detail,
    as_json: bool,
    quiet: bool,
    log_format: str,
) -> None:
    """Run the evaluation in the file CONFIG and show what its contexts do.

    Trials and scores are kept in a new directory under the results directory, which `keval report`, `show` and
    `score` read.
    """
    if replay is not None and record:
        raise click.UsageError(
            "--replay calls no model or server that --record could record; --replay-misses live records by itself"
        )
    log, hidden, messages = log_watchers(log_format), redactor(), message_console(quiet=quiet)
    asked = attrs.evolve(selection, gates=gate_flags.gates)
    with _planned(config, asked, replay, replay_misses, output_dir) as (plan, played):
        regression = gate_flags.regression(output_dir)
        print_notices(plan, messages)
        if dry_run:
            if as_json:
                print_json(describe(plan))
            else:
                print_plan(plan, data_console())
            return

        from keval.run.active_run import RunOptions
        from keval_report.terminal.progress import Progress

        progress = Progress(messages, plan.trial_count)
        watchers = [("keval/progress", progress), *log, *viewers]
        options = RunOptions(watchers, hidden, regression=regression, record=record)
        if played is None:
            from keval.run.flow import run_plan

            work = run_plan(plan, output_dir, options)
        else:
            from keval_replay.replay import replay_run

            work = replay_run(played, plan, output_dir, options)
        run, summary = carry_out(
            work,
            progress,
            lambda: _interrupted(progress, is_replay=played is not None),
            stop=options.stop,
            grace=plan.evaluation.execution.grace_seconds,
        )
    tell_replaced(hidden.replaced, quiet=quiet)
    finish(run, summary, detail=detail, as_json=as_json, quiet=quiet, strict=gate_flags.strict)


@contextmanager
def _planned(
    config: Path | None, selection: Selection, replay: str | None, misses: Literal["fail", "live"], output_dir: Path
) -> Iterator[tuple[Plan, Replay | None]]:
    """Yield the plan, and the replay that it is of, if it is one."""
    if replay is not None:
        from keval_replay.replay_plan import planned_replay

        with planned_replay(config, selection, find_run(replay, output_dir), misses, redactor()) as planned:
            yield planned
        return
    if config is None:
        raise click.UsageError("Missing argument 'CONFIG'.", click.get_current_context())
    from keval.plan.build import make_plan

    evaluation = load(config)
    learn_config(redactor(), evaluation)
    yield make_plan(ablated(select(evaluation, selection))), None


def _interrupted(progress: Progress, *, is_replay: bool) -> str:
    """Say where what was finished is, and which command goes on."""
    if progress.directory is None:
        return "interrupted"
    kept = f"interrupted; finished trials are in {progress.directory}"
    if is_replay:
        return f"{kept}; replay again"
    command = "score" if progress.scoring else "resume"
    return f"{kept}; `keval {command} {progress.directory}` continues it"
