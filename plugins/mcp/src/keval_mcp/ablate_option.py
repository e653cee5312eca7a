"""The option `--ablate`."""

from __future__ import annotations

import click

from keval.cli.call import CommandCall, CommandOptions


def _apply(call: CommandCall, ablate: tuple[str, ...]) -> None:
    if ablate:
        from keval_mcp.ablation import ablating  # it imports what `--help` does not need

        call.changes.append(lambda evaluation: ablating(evaluation, ablate))


def _keep(call: CommandCall) -> None:
    """Keep the conditions that ablation has added to a run, which another config extends."""
    if call.run is not None and call.config is not None:
        _apply(call, tuple(call.run.manifest.config.get("ablated", ())))


keeping = CommandOptions([], _keep)
options = CommandOptions(
    [
        click.option(
            "--ablate",
            multiple=True,
            metavar="LABEL",
            help="Also run this condition without each of its tools, sections and skills.",
        )
    ],
    _apply,
)
