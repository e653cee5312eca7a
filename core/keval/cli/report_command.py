"""`keval report`: a run's table, again."""

from __future__ import annotations

from pathlib import Path

import click

from keval.cli.options import GateFlags, gate_options, json_option, results_option, wide_option
from keval.cli.session import finish
from keval.errors import ConfigError
from keval.gates.decide import with_gates
from keval.gates.expectations import ExpectationCheck
from keval.gates.expression import Names, read_gates
from keval.store.run import find_run

__all__ = ["command"]


@click.command("report")
@click.argument("run")
@gate_options
@results_option
@wide_option
@json_option
def command(run: str, gate_flags: GateFlags, output_dir: Path, wide: bool, as_json: bool) -> None:
    """Show the table of RUN: a path, an id or its start, or `latest`.

    It is made anew from the run's trials and scores, and its gates are decided again, with those of flags. Exits as the
    run did.
    """
    found = find_run(run, output_dir)
    under_way = found.is_locked
    flags, problems = read_gates(
        ((text, f"--fail-under {text}") for text in gate_flags.gates), Names.of(found.manifest)
    )
    if problems:
        raise ConfigError(problems)
    regression, expectations = gate_flags.regression(output_dir, found), ExpectationCheck()
    summary = found.summary(expectations.watch(found.trials()))
    summary = with_gates(found, summary, expectations, flags=flags, regression=regression)
    finish(found, summary, wide=wide, as_json=as_json, under_way=under_way, strict=gate_flags.strict)
