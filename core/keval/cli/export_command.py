"""`keval export`: a run in the format of others."""

from __future__ import annotations

import math
from pathlib import Path

import click

from keval.cli.options import json_option, results_option
from keval.errors import RunError
from keval.nearest import suggestion
from keval.report.export import FORMATS
from keval.report.terminal import message_console, print_json, safe
from keval.run.store import RunDirectory

__all__ = ["command"]


def _known(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    if value not in FORMATS:
        hint = suggestion(value, FORMATS) or f"; formats: {', '.join(FORMATS)}"
        raise click.BadParameter(f"no format {value!r}{hint}", ctx, parameter)
    return value


def _finite(ctx: click.Context, parameter: click.Parameter, value: float) -> float:
    if math.isnan(value):  # which no range excludes
        raise click.BadParameter("nan is no share; give a number from 0 to 1", ctx, parameter)
    return value


@click.command("export")
@click.argument("run")
@click.option(
    "--format", "format_name", required=True, metavar="NAME", callback=_known, help=f"The format: {', '.join(FORMATS)}."
)
@click.option(
    "-d",
    "--to",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder to write to.  [default: export/FORMAT in the run's own]",
)
@click.option(
    "--threshold",
    type=click.FloatRange(0, 1),
    callback=_finite,
    default=0.5,
    show_default=True,
    metavar="SHARE",
    help="The share of its scale from which on a score passes, where a format wants to know that.",
)
@results_option
@json_option
def command(
    *, run: str, format_name: str, folder: Path | None, threshold: float, output_dir: Path, as_json: bool
) -> None:
    """Export RUN: a path, an id or its start, or `latest`. Nobody is called.

    The files that were written are listed on stdout. Exporting again replaces them.
    """
    directory = RunDirectory.find(run, output_dir)
    if directory.is_locked:
        raise RunError(f"another process is writing to {directory.path}; export it when that has ended")
    folder = folder or directory.path / "export" / format_name
    exported = FORMATS[format_name](directory, folder, threshold)
    for reason in exported.left_out:
        message_console().print(safe(f"note: {reason}", "yellow"), soft_wrap=True)
    if as_json:
        files = [str(path) for path in exported.files]
        print_json({"format": format_name, "folder": str(folder), "files": files, "left_out": list(exported.left_out)})
    else:
        for path in exported.files:
            click.echo(path)
