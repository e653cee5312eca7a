"""`keval score`: a finished run, scored again."""

from __future__ import annotations

import asyncio
import gc
import os
from pathlib import Path

import attrs
import click

from keval.cli.loopback import spare_loopback_the_proxy
from keval.cli.options import json_option, quiet_option, results_option
from keval.cli.outcome import finish
from keval.config.load import read
from keval.config.select import Selection, select
from keval.config.source import Source
from keval.report.progress import Progress
from keval.report.terminal import message_console
from keval.run.store import RunDirectory

__all__ = ["command"]


@click.command("score")
@click.argument("run")
@click.option("--metric", multiple=True, metavar="NAME", help="Only this metric, or any installed one. Repeatable.")
@click.option("--judge", multiple=True, metavar="NAME", help="Only this judge. Repeatable.")
@click.option("--model", multiple=True, metavar="LABEL=PROVIDER/NAME", help="Ask a judge another model.")
@results_option
@json_option
@quiet_option
def command(
    *,
    run: str,
    metric: tuple[str, ...],
    judge: tuple[str, ...],
    model: tuple[str, ...],
    output_dir: Path,
    as_json: bool,
    quiet: bool,
) -> None:
    """Score RUN again: a path, an id or its start, or `latest`. No agent is called.

    Without --metric and --judge, everything in the run's config scores. New scores replace earlier ones of the same
    scorer and leave the others.
    """
    from keval.run.build import make_scorers
    from keval.run.evaluate import rescore

    directory = RunDirectory.find(run, output_dir)
    manifest = directory.manifest()
    # Neither prompts nor questions are read again, so what they need from the environment need not be there.
    config = {
        **manifest["config"],
        "conditions": dict.fromkeys(manifest["conditions"]),
        "dataset": {"path": manifest["dataset"]["path"]},
    }
    source = Source(str(directory.path / "manifest.json"), Path(manifest["config_folder"]), config)
    evaluation = select(read(source), Selection(metrics=metric, judges=judge, models=model))
    if metric or judge:
        evaluation = attrs.evolve(
            evaluation,
            metrics=evaluation.metrics if metric else (),
            judges=evaluation.judges if judge else (),
        )
    scorers, plugins = make_scorers(evaluation)
    spare_loopback_the_proxy(os.environ)
    progress = Progress(message_console(quiet=quiet), 0)
    gc.freeze()  # as in `keval run`
    try:
        with progress:
            summary = asyncio.run(rescore(directory, evaluation, scorers, plugins, [("keval/progress", progress)]))
    except KeyboardInterrupt:
        click.echo(f"interrupted; score {directory.path} again to complete it", err=True)
        raise SystemExit(130) from None
    finish(directory, summary, as_json=as_json, quiet=quiet)
