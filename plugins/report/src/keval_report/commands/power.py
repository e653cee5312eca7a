"""`keval power`: how many questions a run needs to show an effect, and what it would take."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from keval.cli.call import CommandCall, CommandOptions, added_options
from keval.cli.config_argument import config_argument, read_config
from keval.cli.console import print_json
from keval.cli.help import SectionedCommand
from keval.cli.options import json_option, results_option, selection_options
from keval.run.select import Selection, select
from keval.store.run import find_run
from keval.store.serialization import to_plain
from keval_report.terminal.console import data_console


class _Size(click.ParamType[tuple[float, bool]]):
    """A size of an effect: a number in the units of the scale, or `10%` of the scale."""

    name = "SIZE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, bool]:
        """Return the size, and whether it is a share of the scale."""
        text = str(value).strip()
        share = text.endswith("%")
        try:
            size = float(text.removesuffix("%")) / (100 if share else 1)
        except ValueError:
            size = 0.0
        if not 0 < size < float("inf"):
            self.fail(f"expected a number above 0 such as 0.1, or a share of the scale such as 10%, got {text!r}")
        return size, share


@click.command("power", cls=SectionedCommand)
@config_argument
@click.option(
    "--effect",
    type=_Size(),
    metavar="X|X%",
    help="The difference to be seen, in the scale's units, or in % of it.  [default: the margin of each metric]",
)
@click.option("--pilot", metavar="RUN", help="An earlier run that tells how much scores scatter, and what trials cost.")
@click.option(
    "--power",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.8,
    show_default=True,
    help="The probability to see the difference if there is one.",
)
@selection_options
@added_options("power")
@results_option
@json_option
def command(
    *,
    config: Path,
    effect: tuple[float, bool] | None,
    pilot: str | None,
    power: float,
    selection: Selection,
    added: Mapping[CommandOptions, Mapping[str, Any]],
    output_dir: Path,
    as_json: bool,
) -> None:
    """Plan the run of CONFIG: how many questions show an effect, what its dataset shows, and what that would cost.

    Nothing is run. Without --pilot, it is assumed how much scores scatter.
    """
    from keval.plan.build import make_plan
    from keval_analysis.power import Pilot, PowerTarget, plan_power
    from keval_report.terminal.planning import print_power

    with CommandCall.begun(added, root=output_dir, config=config, selection=selection) as call:
        plan = make_plan(call.changed(select(read_config(config), selection)))
    size, is_share = effect or (None, False)
    found = find_run(pilot, output_dir) if pilot is not None else None
    planned = plan_power(plan, PowerTarget(size, is_share, power), Pilot.of(found) if found else None)
    print_json(to_plain(planned)) if as_json else print_power(planned, data_console())
