"""`keval list`: the runs there are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from keval.cli.console import data_console, print_json
from keval.cli.messages import tell
from keval.cli.options import json_option, results_option
from keval.errors import RunError
from keval.store.run import list_runs
from keval_report.terminal.runs import ListedRun, describe_runs, print_runs, run_rows
from keval_report.words import run_place


def _readable(root: Path) -> Iterator[ListedRun]:
    for run in list_runs(root):
        try:
            yield ListedRun(run_place(run.path), run.manifest, run.written_summary(), run.is_locked)
        except RunError as error:
            tell(f"skipped: {error}")


@click.command("list")
@results_option
@json_option
def command(output_dir: Path, as_json: bool) -> None:
    """List the runs in the results directory, one a line, oldest first.

    Where the output is no terminal, each line is 20 fields with tabs between, without a heading: run, state,
    evaluation, started, agents, conditions, planned, trials, failed, simulated; of the effect that stands out metric,
    judge, agent, condition, difference, ci_low, ci_high, verdict; path; and when a replayed run was
    recorded.
    """
    runs = list(_readable(output_dir))
    console = data_console()
    if as_json:
        print_json(describe_runs(runs))
    elif not runs:
        tell(f"no runs under {output_dir}; `keval run CONFIG` makes one")
    elif console.is_terminal:
        print_runs(runs, console)
    else:
        for row in run_rows(runs):
            click.echo(row)
