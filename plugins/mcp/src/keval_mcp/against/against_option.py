"""The options `--against`, `--against-setup` and `--changed-since`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import click

from keval.cli.call import CommandCall, CommandOptions
from keval.cli.config_argument import config_here
from keval.cli.messages import redactor, tell
from keval.errors import Problem

if TYPE_CHECKING:  # it imports what `--help` does not need
    from pathlib import Path

    from keval.config.evaluation import Evaluation
    from keval_mcp.against.against import Base


def _apply(call: CommandCall, against: str | None, against_setup: str | None, changed_since: str | None) -> None:
    if against_setup and not against:
        raise click.UsageError("--against-setup prepares the checkout of --against REF; add that")

    def change(evaluation: Evaluation) -> Evaluation:
        asked = {"--changed-since": changed_since, "--against": against}
        if call.planned is not None:  # as in a pull request without secrets
            told = " ".join(f"{flag} {ref}" for flag, ref in asked.items() if ref)
            notice = Problem(told, "a replay plays what was recorded, so this has no effect")
            return attrs.evolve(evaluation, notices=(*evaluation.notices, notice))
        from keval_mcp.against.against import Base, checked_out, held_against  # it imports what `--help` does not need

        config = config_here(call.config)
        if changed_since is not None:
            with checked_out(config, Base(changed_since, "", ""), "--changed-since") as base:
                evaluation = _only_changed(call, evaluation, config, base)
        if against is None:
            return evaluation
        base = call.stack.enter_context(checked_out(config, Base(against, "", "", against_setup)))
        return held_against(evaluation, config, base)

    if against is not None or changed_since is not None:
        call.changes.append(change)


def _only_changed(call: CommandCall, evaluation: Evaluation, config: Path, base: Base) -> Evaluation:
    """Return what is left of an evaluation; if that is nothing, say so, and exit with 0."""
    from keval.cli.session import run_to_end  # they import what `--help` does not need
    from keval_mcp.against.changed import only_changed

    found = run_to_end(only_changed(evaluation, config, base, call.root, redactor()))
    if found.conditions or found.problems:
        return found
    for notice in found.notices:
        tell(f"note: {notice}")
    tell(f"note: nothing that {config} names has changed since {base.ref}, so nothing is run")
    raise SystemExit(0)


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
        click.option(
            "--changed-since",
            metavar="REF",
            help="Run only the conditions and questions that are not as they were at this commit.",
        ),
    ],
    _apply,
)
