"""`keval score`: a finished run, scored again."""

from __future__ import annotations

import asyncio
import gc
import os
from pathlib import Path

import attrs
import click

from keval.cli.loopback import spare_loopback_the_proxy
from keval.cli.options import json_option, judge_repetitions_option, quiet_option, results_option
from keval.cli.outcome import finish
from keval.cli.signals import end_on_sigterm
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
@judge_repetitions_option
@click.option("--missing", is_flag=True, help="Only the scores that there are none of, or that failed.")
@results_option
@json_option
@quiet_option
def command(
    *,
    run: str,
    metric: tuple[str, ...],
    judge: tuple[str, ...],
    model: tuple[str, ...],
    judge_repetitions: int | None,
    missing: bool,
    output_dir: Path,
    as_json: bool,
    quiet: bool,
) -> None:
    """Score RUN again: a path, an id or its start, or `latest`. No agent is called.

    Without --metric and --judge, everything scores that scored before. New scores replace earlier ones of the same
    scorer and leave the others. Scoring that was interrupted goes on where it stopped when it is asked for again.
    """
    from keval.run.build import make_scorers
    from keval.run.evaluate import rescore

    directory = RunDirectory.find(run, output_dir)
    manifest = directory.manifest()
    # Earlier passes may have added scorers, or asked judges otherwise.
    judges = {label: {"type": judge["type"], **judge["options"]} for label, judge in manifest["judges"].items()}
    metrics = list(manifest["config"].get("metrics", ()))
    named = [name for entry in metrics for name in ([entry] if isinstance(entry, str) else entry)]
    scored = [entry["metric"] for entry in manifest["scorers"] if entry["judge"] is None]
    metrics += [name for name in scored if name not in named and name.partition("/")[0] not in named]
    # Neither prompts nor questions are read again, so what they need from the environment need not be there.
    config = {
        **manifest["config"],
        **({"judges": judges} if judges else {}),
        **({"metrics": metrics} if metrics else {}),
        "conditions": dict.fromkeys(manifest["conditions"]),
        "dataset": {"path": manifest["dataset"]["path"]},
    }
    source = Source(str(directory.path / "manifest.json"), Path(manifest["config_folder"]), config)
    selection = Selection(metrics=metric, judges=judge, models=model)
    written = read(source)
    implied = [attrs.evolve(use, implied=manifest["judges"][use.label]["implied"]) for use in written.judges]
    # No agent is called, so none is chosen or given another model.
    evaluation = select(attrs.evolve(written, agents=(), judges=tuple(implied)), selection)
    if metric or judge:
        evaluation = attrs.evolve(
            evaluation,
            metrics=evaluation.metrics if metric else (),
            judges=evaluation.judges if judge else (),
            # A rubric's file need not be there when no judge reads it.
            rubrics=evaluation.rubrics if judge else (),
        )
    scorers, plugins = make_scorers(evaluation)
    spare_loopback_the_proxy(os.environ)
    end_on_sigterm()
    progress = Progress(message_console(quiet=quiet), 0)
    watchers = [("keval/progress", progress)]
    gc.freeze()  # as in `keval run`
    try:
        with progress:
            summary = asyncio.run(
                rescore(
                    directory,
                    evaluation,
                    scorers,
                    plugins,
                    watchers,
                    missing=missing,
                    judge_repetitions=judge_repetitions,
                )
            )
    except KeyboardInterrupt:
        click.echo(f"interrupted; the same command goes on where scoring {directory.path} stopped", err=True)
        raise SystemExit(130) from None
    finish(directory, summary, as_json=as_json, quiet=quiet)
