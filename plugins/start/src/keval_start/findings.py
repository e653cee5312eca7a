"""Findings: what a command looked at, and whether it is well."""

from __future__ import annotations

from collections.abc import AsyncIterator

import attrs
import click

from keval.cli.console import print_json
from keval.cli.messages import foreign
from keval.cli.session import run_to_end

_MARKS = {True: "ok", False: "FAULT", None: "-"}


@attrs.frozen
class Finding:
    """What was looked at, whether it is well, what was found, and what to do if it is not well.

    `well` is `None` where it depends on what is to be run.
    """

    about: str
    well: bool | None
    found: str
    remedy: str = ""


def tell_findings(examined: AsyncIterator[Finding], *, as_json: bool) -> None:
    """Print findings when all are there, and end the command with code 2 if anything is at fault."""

    async def collected() -> list[Finding]:
        return [finding async for finding in examined]

    found = run_to_end(collected())
    if as_json:
        print_json([attrs.asdict(finding) for finding in found])
    else:
        for finding in found:
            click.echo(foreign(f"{_MARKS[finding.well]:<5}  {finding.about:<8}  {finding.found}"))
            if not finding.well and finding.remedy:
                click.echo(foreign(f"{'':<17}{finding.remedy}"))
    if any(finding.well is False for finding in found):
        raise SystemExit(2)
