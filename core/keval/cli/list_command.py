"""`keval list`: the runs there are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from keval.cli.options import json_option, results_option
from keval.errors import RunError
from keval.report.runs import describe_runs, print_runs
from keval.report.terminal import data_console, print_json
from keval.run.store import RunDirectory

__all__ = ["command"]


def _readable(root: Path) -> Iterator[tuple[Path, dict[str, Any], dict[str, Any] | None]]:
    for run in RunDirectory.all(root):
        try:
            yield run.path, run.manifest(), run.summary()
        except RunError as error:
            click.echo(f"left out: {error}", err=True)


@click.command("list")
@results_option
@json_option
def command(output_dir: Path, as_json: bool) -> None:
    """List the runs in the results directory, oldest first."""
    described = describe_runs(_readable(output_dir))
    if as_json:
        print_json(described)
    elif described:
        print_runs(described, data_console())
    else:
        click.echo(f"no runs under {output_dir}; `keval run CONFIG` makes one", err=True)
