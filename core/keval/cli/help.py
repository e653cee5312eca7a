"""What `--help` lists: what one begins with. `--help-all` lists all."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import click

HELP_ALL = "--help-all"
"""Asks for help with everything; the `meta` of a context of click has whether it was given."""


@cache
def told() -> Mapping[str, Mapping[str, str]]:
    """Return what `commands.txt` says, by its titles: of commands and options, and what old names stand for now."""
    sections, title = dict[str, dict[str, str]](), ""
    # Plain lines, as a reader of TOML or YAML would take a tenth of `keval --help`.
    for line in Path(__file__).with_name("commands.txt").read_text(encoding="utf-8").splitlines():
        name, colon, text = line.partition(": ")
        title = title if colon else line
        if colon:
            sections.setdefault(title, {})[name] = text
    return sections


class SectionedCommand(click.Command):
    """A command with many options, of which `--help` lists those that one begins with."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options; those that no section names come last."""
        options = (each for each in self.get_params(ctx) if isinstance(each, click.Option))
        rest = {str(each.name): record for each in options if (record := each.get_help_record(ctx))}
        # click 8.5 has another name for `--help` than those before it.
        # A command of another package has no line there, and lists all its options.
        titles = {"Options": f"{told()['First options'].get(str(self.name), ' '.join(rest))} help _click_default_help"}
        if ctx.meta.get(HELP_ALL):
            titles |= {**told()["Sections of options"], "Advanced options": " ".join(rest)}
        for title, names in titles.items():
            if rows := [rest.pop(name) for name in names.split() if name in rest]:
                with formatter.section(title):
                    formatter.write_dl(rows)
        if rest:
            formatter.write(f"\n{HELP_ALL} lists {len(rest)} more.\n")
