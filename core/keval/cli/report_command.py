"""`keval report`: a run's table, again."""

from __future__ import annotations

from pathlib import Path

import click

from keval.cli.options import json_option, results_option
from keval.cli.outcome import finish
from keval.run.store import RunDirectory

__all__ = ["command"]


@click.command("report")
@click.argument("run")
@results_option
@json_option
def command(run: str, output_dir: Path, as_json: bool) -> None:
    """Show the table of RUN: a path, an id or its start, or `latest`.

    It is made anew from the run's trials and scores. Exits as the run did.
    """
    from keval.stats.summary import summarise

    directory = RunDirectory.find(run, output_dir)
    under_way = directory.is_locked
    summary = summarise(directory.manifest(), directory.trials(), directory.scores())
    finish(directory, summary, as_json=as_json, under_way=under_way)
