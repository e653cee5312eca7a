"""`keval doctor`: whether what a run needs is there, with a remedy for what is not."""

from __future__ import annotations

from pathlib import Path

import attrs
import click

from keval.cli.options import json_option, results_option
from keval.cli.session import run_to_end
from keval.config.load import load
from keval.config.secrets import learn_config
from keval.report.console import print_json
from keval.report.terminal import foreign, redactor

_MARKS = {True: "ok", False: "FAULT", None: "-"}


@click.command("doctor")
@click.argument("config", type=click.Path(path_type=Path), required=False)
@results_option
@json_option
def command(*, config: Path | None, output_dir: Path, as_json: bool) -> None:
    """Look at Python, the plugins, keys, the disk, the clock and keval's own models.

    With CONFIG, its servers are started, too, and its models' keys are looked for. No model is asked.
    """
    from keval.plan.build import make_plan
    from keval.run.doctor import Finding, examine

    plan = None
    if config is not None:
        evaluation = load(config)
        learn_config(redactor(), evaluation)
        plan = make_plan(evaluation)

    async def findings() -> list[Finding]:
        return [finding async for finding in examine(output_dir, plan, redactor())]

    found = run_to_end(findings())
    if as_json:
        print_json([attrs.asdict(finding) for finding in found])
    else:
        for finding in found:
            click.echo(foreign(f"{_MARKS[finding.well]:<5}  {finding.about:<8}  {finding.found}"))
            if not finding.well and finding.remedy:
                click.echo(foreign(f"{'':<17}{finding.remedy}"))
    if any(finding.well is False for finding in found):
        raise SystemExit(2)
