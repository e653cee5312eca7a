"""What `--help` lists: what one begins with. `--help-all` lists all."""

from __future__ import annotations

from typing import Any

import click

HELP_ALL = "--help-all"
"""Asks for help with everything; the `meta` of a context of click has whether it was given."""
_SECTIONS = {
    "Options to compare": "effect pilot power metric judge missing add_repetitions extend ablate",
    "Options for CI": "fail_under fail_on_regression max_regression strict max_failures record replay replay_misses",
}
"""The further options of all commands by section."""


class SectionedCommand(click.Command):
    """A command with many options, whose `--help` lists only those that it names as `first`."""

    def __init__(self, *args: Any, first: str, **more: Any) -> None:
        super().__init__(*args, **more)
        # click 8.5 has another name for `--help` than those before it.
        self._first = {"Options": f"{first} help _click_default_help"}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options; those that no section names come last."""
        options = (each for each in self.get_params(ctx) if isinstance(each, click.Option))
        told = {each.name: record for each in options if (record := each.get_help_record(ctx))}
        more = {**_SECTIONS, "Advanced options": " ".join(told)} if ctx.meta.get(HELP_ALL) else {}
        for title, names in {**self._first, **more}.items():
            if rows := [told.pop(name) for name in names.split() if name in told]:
                with formatter.section(title):
                    formatter.write_dl(rows)
        if told:
            formatter.write(f"\n{HELP_ALL} lists {len(told)} more.\n")
