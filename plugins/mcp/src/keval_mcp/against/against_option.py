"""The options `--against` and `--against-setup`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from keval.cli.call import CommandCall, CommandOptions
from keval.cli.config_argument import config_here

if TYPE_CHECKING:  # it imports what `--help` does not need
    from keval.config.evaluation import Evaluation


def _apply(call: CommandCall, against: str | None, against_setup: str | None) -> None:
    if against_setup and not against:
        raise click.UsageError("--against-setup prepares the checkout of --against REF; add that")
    if against is not None:
        from keval_mcp.against.against import Base, checked_out, held_against  # it imports what `--help` does not need

        config = config_here(call.config)
        base = call.stack.enter_context(checked_out(config, Base(against, "", "", against_setup)))

        def change(evaluation: Evaluation) -> Evaluation:
            if call.planned is not None:  # which is known once all options were looked at
                raise click.UsageError("--replay plays what was recorded; record a run with --against instead")
            return held_against(evaluation, config, base)

        call.changes.append(change)


def _keep(call: CommandCall) -> None:
    """Check out once more what a run that goes on is held against."""
    if call.run is not None and call.run.manifest.config.get("against"):
        from keval_mcp.against.against import checked_out_again, held_against

        base = call.stack.enter_context(checked_out_again(call.run.manifest))
        if config := call.config:  # which extends the run
            call.changes.append(lambda evaluation: held_against(evaluation, config, base))


keeping = CommandOptions([], _keep)
options = CommandOptions(
    [
        click.option(
            "--against",
            metavar="REF",
            help="Also run each condition that differs as it was at this commit of the Git repository.",
        ),
        click.option(
            "--against-setup",
            metavar="COMMAND",
            help="Run this in the checkout of --against first, such as 'npm ci'.",
        ),
    ],
    _apply,
)
