"""`keval validate`: everything that can be checked without starting anything."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from keval.cli.call import CommandCall, CommandOptions, added_options
from keval.cli.display import tell_notices
from keval.cli.messages import foreign, redactor
from keval.cli.options import selection_options
from keval.config.load import load
from keval.config.secrets import learn_config
from keval.run.select import Selection, select


@click.command("validate")
@click.argument("config", type=click.Path(path_type=Path))
@selection_options
@added_options("validate")
def command(config: Path, selection: Selection, added: Mapping[CommandOptions, Mapping[str, Any]]) -> None:
    """Check the evaluation in CONFIG: keys, plugins and their options, references, prompts and the dataset.

    Keys of model providers and MCP servers are checked by `keval run`, before its first trial.
    """
    from keval.plan.build import make_plan
    from keval.records.formats import counted
    from keval.seams.interfaces import ComparingJudge

    evaluation = load(config)
    learn_config(redactor(), evaluation)
    with CommandCall.begun(added, root=Path(), config=config, selection=selection) as call:
        plan = make_plan(call.changed(select(evaluation, selection)))
    tell_notices(plan)
    judges = len(plan.scorers.judges)
    asked = (
        # No judge compares a trial with itself.
        sum(key.condition != item.plugin.against for key in plan.trials())
        if isinstance(item.plugin, ComparingJudge)
        else plan.trial_count
        for item in plan.scorers.judges
    )
    judged = sum(asked) * plan.evaluation.execution.judge_repetitions
    more = "".join(getattr(section, "told", "") for section in plan.evaluation.sections)
    more += (
        f", {counted(judged, 'judgement')} by {', '.join(item.label for item in plan.scorers.judges)}" if judges else ""
    )
    # Where sharing only shows when the server starts, none is assumed: the figure is the most that there may be.
    starts = sum(trials for sharing, trials in plan.sharing().values() if sharing is None or not sharing.shared)
    more += f", up to {starts:,} starts of servers" if starts else ""
    click.echo(
        foreign(f"{config}: valid; {counted(plan.trial_count, 'trial')} ({counted(len(plan.samples), 'sample')}){more}")
    )
