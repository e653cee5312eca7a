"""`keval badge`: a figure of a run for a README."""

from __future__ import annotations

import json
from pathlib import Path

import click

from keval.cli.options import results_option
from keval.store.run import find_run


@click.command("badge")
@click.argument("run")
@click.option(
    "--metric", metavar="NAME", help="The metric or rubric.  [default: the first, primary ones before others]"
)
@click.option("--condition", metavar="LABEL", help="The condition.  [default: the first]")
@click.option("--agent", metavar="LABEL", help="The agent.  [default: the first]")
@click.option("--svg", is_flag=True, help="Print a picture, in place of data for the endpoint badge of shields.io.")
@results_option
def command(*, run: str, svg: bool, output_dir: Path, **wanted: str | None) -> None:
    """Print a badge of RUN: an effect with its interval and the number of questions, or that it is undecided.

    RUN is a path, an id or its start, or `latest`.
    """
    from keval_report.badge import badge_of  # with what reads a summary

    found = find_run(run, output_dir)
    badge = badge_of(found.written_summary() or found.summary(), wanted)
    click.echo(badge.svg() if svg else json.dumps(badge.endpoint(), ensure_ascii=False), nl=not svg)
