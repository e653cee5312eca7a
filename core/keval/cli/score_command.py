"""`keval score`: a finished run, scored again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import click

from keval.cli.call import CommandCall, CommandOptions, added_options
from keval.cli.display import display
from keval.cli.help import SectionedCommand
from keval.cli.messages import redactor
from keval.cli.options import Detail, budget_option, executor_option, judge_repetitions_option, output_options
from keval.cli.session import carry_out, finish, log_watchers
from keval.config.load import rebuild_scoring
from keval.config.secrets import learn_config
from keval.run.select import Selection, select
from keval.store.run import find_run


@click.command("score", cls=SectionedCommand)
@click.argument("run")
@click.option("--metric", multiple=True, metavar="NAME", help="Only this metric, or any installed one. Repeatable.")
@click.option("--judge", multiple=True, metavar="NAME", help="Only this judge. Repeatable.")
@click.option("-m", "--model", multiple=True, metavar="[LABEL=]PROVIDER/NAME", help="Ask judges another model.")
@judge_repetitions_option
@budget_option
@added_options("score")
@executor_option
@click.option("--missing", is_flag=True, help="Only make scores that are missing or failed.")
@output_options
def command(
    *,
    run: str,
    metric: tuple[str, ...],
    judge: tuple[str, ...],
    model: tuple[str, ...],
    judge_repetitions: int | None,
    budget: tuple[tuple[str, float], ...],
    added: Mapping[CommandOptions, Mapping[str, Any]],
    executor: str | None,
    missing: bool,
    output_dir: Path,
    detail: Detail,
    as_json: bool,
    quiet: bool,
    log_format: str,
) -> None:
    """Score RUN again: a path, an id or its start, or `latest`. No agent is called.

    Without --metric and --judge, everything scores that scored before. New scores replace earlier ones of the same
    scorer and leave the others. Scoring that was interrupted goes on where it stopped when it is asked for again.
    """
    from keval.plan.build import make_scoring_plan
    from keval.run.active_run import RunOptions
    from keval.run.flow import rescore

    log = log_watchers(log_format)
    found = find_run(run, output_dir)
    # No agent is called, so none is chosen or given another model.
    selection = Selection(metrics=metric, judges=judge, models=model, executor=executor, budget=dict(budget))
    rebuilt = rebuild_scoring(found.manifest, str(found.path / "manifest.json"))
    learn_config(redactor(), rebuilt)
    evaluation = select(rebuilt, selection)
    if metric or judge:
        evaluation = attrs.evolve(
            evaluation,
            metrics=evaluation.metrics if metric else (),
            judges=evaluation.judges if judge else (),
            # A rubric's file need not be there when no judge reads it.
            rubrics=evaluation.rubrics if judge else (),
        )
    with CommandCall.begun(added, root=output_dir, run=found) as call:
        plan = make_scoring_plan(call.changed(evaluation), found.manifest)
        progress = display().progress(0, quiet=quiet)
        watchers = [("keval/progress", progress), *log, *call.watchers]
        _, summary = carry_out(
            rescore(
                found,
                plan,
                RunOptions(watchers, redactor(), given=call.given),
                missing=missing,
                judge_repetitions=judge_repetitions,
            ),
            progress,
            lambda: f"interrupted; run the same command again to continue scoring {found.path}",
        )
        finish(found, summary, call.given, detail=detail, as_json=as_json, quiet=quiet)
