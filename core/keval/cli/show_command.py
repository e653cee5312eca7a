"""`keval show`: what a run was made of, or one of its trials."""

from __future__ import annotations

from pathlib import Path

import click
import orjson

from keval.cli.options import json_option, results_option
from keval.errors import RunError
from keval.nearest import suggestion
from keval.report.terminal import data_console, print_json
from keval.report.transcript import print_run, print_trial
from keval.run.lines import score_line, trial_line
from keval.run.store import RunDirectory

__all__ = ["command"]


@click.command("show")
@click.argument("run")
@click.option("--trial", metavar="ID", help="Show this trial: messages, tool calls and scores.")
@results_option
@json_option
def command(run: str, trial: str | None, output_dir: Path, as_json: bool) -> None:
    """Show RUN: a path, an id or its start, or `latest`; or one trial of it."""
    directory = RunDirectory.find(run, output_dir)
    if trial is None:
        manifest = directory.manifest()
        if as_json:
            print_json(manifest)
        else:
            print_run(manifest, directory.trials(), data_console())
        return
    found = next((item for item in directory.trials() if item.id == trial), None)
    if found is None:
        ids = [item.id for item in directory.trials()]
        hint = suggestion(trial, ids) or f"; for example {ids[0]!r}" if ids else "; the run has no trials"
        raise RunError(f"no trial {trial!r} in {directory.path}{hint}")
    scores = [line for line in directory.scores() if line.trial == trial]
    if as_json:
        data = {**orjson.loads(trial_line(found)), "scores": [orjson.loads(score_line(line)) for line in scores]}
        print_json(data)
    else:
        bands = {entry["metric"]: entry["bands"] for entry in directory.manifest()["scorers"]}
        print_trial(found, scores, bands, data_console())
