"""`keval validate`: everything that can be checked without starting anything, and with --live also what a run needs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from keval.cli.call import CommandCall, CommandOptions, added_options
from keval.cli.config_argument import CONFIG_NAMES, config_here, read_config
from keval.cli.display import tell_notices
from keval.cli.help import SectionedCommand
from keval.cli.messages import foreign, redactor
from keval.cli.options import json_option, results_option, selection_options
from keval.records.formats import counted
from keval.run.select import Selection, select
from keval.seams.interfaces import ComparingJudge


@click.command("validate", cls=SectionedCommand)
@click.argument("config", type=click.Path(path_type=Path), required=False)
@click.option(
    "--live",
    is_flag=True,
    help="Also start its servers, and look for keys, and at plugins, disk and sandboxes.",
)
@selection_options
@added_options("validate")
@results_option
@json_option
def command(
    *,
    config: Path | None,
    live: bool,
    selection: Selection,
    added: Mapping[CommandOptions, Mapping[str, Any]],
    output_dir: Path,
    as_json: bool,
) -> None:
    """Check the evaluation in CONFIG: keys, plugins and their options, references, prompts and the dataset.

    Nothing is started or asked. With --live, all that `keval run` needs before its first trial is brought up and ended
    again, a line for each with the remedy where it is missing; no model is asked. In a folder without a config, --live
    looks at the installation alone.
    """
    from keval.plan.build import make_plan

    if as_json and not live:
        raise click.UsageError("--json prints what --live finds; add that")
    plan = None
    if config or not live or any(Path(name).is_file() for name in CONFIG_NAMES):
        config = config_here(config)
        with CommandCall.begun(added, root=output_dir, config=config, selection=selection) as call:
            plan = make_plan(call.changed(select(read_config(config), selection)))
        tell_notices(plan)
    if live or plan is None:
        from keval_start.live_checks import examine  # it imports what brings servers up
        from keval_start.models_command import tell_findings

        tell_findings(examine(output_dir, plan, redactor()), as_json=as_json)
        return
    judged = sum(
        # No judge compares a trial with itself.
        sum(key.condition != item.plugin.against for key in plan.trials())
        if isinstance(item.plugin, ComparingJudge)
        else plan.trial_count
        for item in plan.scorers.judges
    )
    judged *= plan.evaluation.execution.judge_repetitions
    # Where sharing only shows when the server starts, none is assumed: the figure is the most that there may be.
    starts = sum(trials for sharing, trials in plan.sharing().values() if sharing is None or not sharing.shared)
    told = f"{config}: valid; {counted(plan.trial_count, 'trial')} ({counted(len(plan.samples), 'sample')})"
    told += "".join(getattr(section, "told", "") for section in plan.evaluation.sections)
    if judged:
        told += f", {counted(judged, 'judgement')} by {', '.join(item.label for item in plan.scorers.judges)}"
    click.echo(foreign(told + (f", up to {starts:,} starts of servers" if starts else "")))
