"""`keval check`: whether an evaluation can be trusted, before money is spent on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import click

from keval.cli.help import SectionedCommand
from keval.cli.options import budget_option, choice_options, json_option, results_option
from keval.run.select import Selection
from keval_instrument.examinations import EXAMINATIONS

_POSITIVE = click.IntRange(min=1)


@click.command(cls=SectionedCommand)
@click.argument("target", metavar="[CONFIG|RUN]", required=False)
@click.option("--only", multiple=True, type=click.Choice([*EXAMINATIONS]), help="Only this examination. Repeatable.")
@click.option("--samples", type=_POSITIVE, metavar="N", help="Draw N samples, in place of `check.samples`.")
@click.option("--repetitions", type=_POSITIVE, metavar="N", help="Ask each N times, in place of `check.repetitions`.")
@budget_option
@choice_options
@results_option
@json_option
def check(
    *,
    target: str | None,
    only: tuple[str, ...],
    samples: int | None,
    repetitions: int | None,
    budget: tuple[tuple[str, float], ...],
    selection: Selection,
    output_dir: Path,
    as_json: bool,
) -> None:
    """Examine an evaluation as an instrument: its checks, metrics, judges and samples.

    Of a CONFIG, samples are drawn and asked, and golden answers and damaged ones are scored, within `check.budget`.
    These are ordinary runs, in the folder EVALUATION-check of the results directory. Of a RUN, or of the folder of an
    earlier check, what is there is examined, and nothing is asked. The exit code is 1 if a check or a bound of
    `check.bounds` is not met.
    """
    from keval.cli.config_argument import config_here, read_config
    from keval.cli.console import print_json
    from keval.run.select import select
    from keval.store.serialization import to_plain
    from keval_instrument.checking import check_config, check_run  # they import what runs evaluations
    from keval_instrument.settings import CheckSection, settings_of
    from keval_instrument.table import print_checked
    from keval_report.terminal.console import data_console

    target = target or str(config_here())
    names = [name for name in EXAMINATIONS if name in (only or EXAMINATIONS)]
    if Path(target).is_file() or Path(target).suffix in (".yaml", ".yml"):
        evaluation = select(read_config(Path(target)), selection)
        counts = {"samples": samples, "repetitions": repetitions}
        given: dict[str, Any] = {key: n for key, n in counts.items() if n is not None}
        caps: dict[str, Any] = dict(budget)
        settings = settings_of(evaluation)
        settings = attrs.evolve(settings, **given, budget=attrs.evolve(settings.budget, **caps))
        evaluation = evaluation.with_section(CheckSection(settings))
        checked, material = check_config(evaluation, names, output_dir)
    elif samples or repetitions or budget or selection != Selection():
        raise click.UsageError("only the check of a CONFIG is narrowed; of a RUN, give --only")
    else:
        checked, material = check_run(target, names, output_dir)
    if as_json:
        print_json(to_plain(checked))
    else:
        print_checked(checked, data_console())
    if not checked.passed:
        raise SystemExit(1)
    runs = filter(None, (material.asked, material.damaged, material.restyled))
    if not all((run.written_summary() or run.summary()).were_all_made() for run in runs):
        raise SystemExit(3)
