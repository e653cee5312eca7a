"""`keval report`: a run's table, again."""

from __future__ import annotations

from pathlib import Path

import click

from keval.cli.options import json_option, results_option, wide_option
from keval.cli.session import finish
from keval.store.run import find_run

__all__ = ["command"]


@click.command("report")
@click.argument("run")
@results_option
@wide_option
@json_option
def command(run: str, output_dir: Path, wide: bool, as_json: bool) -> None:
    """Show the table of RUN: a path, an id or its start, or `latest`.

    It is made anew from the run's trials and scores. Exits as the run did.
    """
    found = find_run(run, output_dir)
    under_way = found.is_locked
    finish(found, found.summary(), wide=wide, as_json=as_json, under_way=under_way)
