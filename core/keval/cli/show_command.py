"""`keval show`: what a run was made of, or one of its trials."""

from __future__ import annotations

from pathlib import Path

import click
import orjson

from keval.cli.options import json_option, results_option
from keval.report.console import data_console, print_json
from keval.report.transcripts import print_run, print_trial
from keval.store.converter import to_plain
from keval.store.jsonl import score_line, trial_line
from keval.store.run import find_run

__all__ = ["command"]


@click.command("show")
@click.argument("run")
@click.option("--trial", metavar="ID", help="Show this trial: messages, tool calls and scores.")
@results_option
@json_option
def command(run: str, trial: str | None, output_dir: Path, as_json: bool) -> None:
    """Show RUN: a path, an id or its start, or `latest`; or one trial of it."""
    found = find_run(run, output_dir)
    if trial is None:
        if as_json:
            print_json(to_plain(found.manifest))
        else:
            print_run(found.manifest, found.trials(), data_console())
        return
    shown = found.trial(trial)
    scores = [line for line in found.scores_file.read() if line.trial == trial]
    if as_json:
        lines = [orjson.loads(score_line(line)) for line in scores]
        print_json({**orjson.loads(trial_line(shown)), "scores": lines})
    else:
        bands = {entry.metric: entry.scale.bands for entry in found.manifest.scorers}
        print_trial(shown, scores, bands, data_console())
