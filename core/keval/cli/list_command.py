"""`keval list`: the runs there are."""

from __future__ import annotations

from pathlib import Path

import click

from keval.cli.options import json_option, results_option
from keval.report.runs import describe_runs, print_runs
from keval.report.terminal import data_console
from keval.run.store import RunDirectory

__all__ = ["command"]


@click.command("list")
@results_option
@json_option
def command(output_dir: Path, as_json: bool) -> None:
    """List the runs in the results directory, oldest first."""
    described = describe_runs((run.path, run.manifest(), run.summary()) for run in RunDirectory.all(output_dir))
    if as_json:
        data_console().print_json(data=described)
    elif described:
        print_runs(described, data_console())
    else:
        click.echo(f"no runs under {output_dir}; `keval run CONFIG` makes one", err=True)
