"""`--note`: what who runs an evaluation says of the run, kept in its manifest."""

from __future__ import annotations

import attrs
import click

from keval.cli.call import CommandCall, CommandOptions
from keval.plugin import ActiveRun, hookimpl


@attrs.frozen
class _Note:
    text: str

    @hookimpl
    def keval_run_described(self, run: ActiveRun) -> None:
        run.amend(note=self.text)


def _apply(call: CommandCall, *, note: str | None) -> None:
    if note:
        call.watchers.append(("keval/note", _Note(" ".join(note.split()))))


options = CommandOptions(
    [click.option("--note", metavar="TEXT", help="Say what the run is for, which lists and reports of it show.")],
    _apply,
)
