"""`keval list`: the runs there are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from keval.cli.options import json_option, results_option
from keval.errors import RunError
from keval.manifest import Manifest
from keval.report.console import data_console, print_json
from keval.report.runs import describe_runs, print_runs
from keval.report.terminal import tell
from keval.store.run import list_runs
from keval.summary import Summary

__all__ = ["command"]


def _readable(root: Path) -> Iterator[tuple[str, Manifest, Summary | None]]:
    for run in list_runs(root):
        try:
            yield str(run.path), run.manifest, run.written_summary()
        except RunError as error:
            tell(f"left out: {error}")


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
        tell(f"no runs under {output_dir}; `keval run CONFIG` makes one")
