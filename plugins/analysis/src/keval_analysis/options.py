"""The options that decide a run: further gates, and another run that it is held against."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from keval.cli.call import CommandCall, CommandOptions
from keval.cli.options import gathered
from keval.errors import ConfigError, Problem

if TYPE_CHECKING:  # they import what `--help` does not need
    from keval.config.evaluation import Evaluation
    from keval.store.run import Run
    from keval_analysis.gates import Regression


@attrs.frozen
class GateFlags:
    """What the flags of a command say about gates: further ones, another run, and whether an undecided one fails.

    `max_regression` is `None` for the margin of each metric.
    """

    fail_under: tuple[str, ...]
    fail_on_regression: str | None
    max_regression: float | None
    strict: bool

    def __attrs_post_init__(self) -> None:
        if self.fail_on_regression is None and self.max_regression != 0:
            raise click.UsageError("--max-regression says how far means may drop; add --fail-on-regression RUN")

    def regression(self, root: Path, run: Run | None = None) -> Regression | None:
        """Return the run that `run`, or a new one, is held against. Raises ConfigError or RunError: there is none."""
        if self.fail_on_regression is None:
            return None
        from keval.store.run import open_run
        from keval_analysis.gates import Regression  # with it, what reads runs is imported

        against = open_run(self.fail_on_regression, root)
        if run is not None and against.path.resolve() == run.path.resolve():
            told = "a run cannot be compared with itself; give the path or id of another run"
            raise ConfigError([Problem(f"--fail-on-regression {self.fail_on_regression}", told)])
        return Regression(against, self.max_regression)


class _GateText(click.ParamType[str]):
    """A gate; in an environment variable, semicolons separate several."""

    name = "GATE"
    envvar_list_splitter = ";"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the gate without blanks around it."""
        return str(value).strip()


class _Drop(click.ParamType[float | None]):
    """How far a mean may drop: a number in the units of its scale, or `margin`, which becomes `None`."""

    name = "N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | None:
        """Return the number."""
        if str(value).strip() == "margin":
            return None
        try:
            size = float(value)
        except ValueError:
            size = -1.0
        # NaN fails this, too.
        if not 0 <= size < math.inf:
            self.fail(f"expected a number of at least 0, or margin for the margin of each metric, got {value!r}")
        return size


_OPTIONS = (
    click.option(
        "--fail-under",
        type=_GateText(),
        multiple=True,
        metavar="GATE",
        help="Exit with 1 unless this holds: 'METRIC >= N'. Repeatable.",
    ),
    click.option(
        "--fail-on-regression",
        metavar="RUN",
        help="Exit with 1 if any mean is clearly worse than in RUN, a path or id.",
    ),
    click.option(
        "--max-regression",
        type=_Drop(),
        default=0.0,
        metavar="N|margin",
        help="Let means drop so far, in the units of their scales, or by the margin of each.  [default: 0]",
    ),
    click.option("--strict", is_flag=True, help="Exit with 1 also if a gate is undecided."),
)
gate_options = gathered("gate_flags", GateFlags, "fail_under fail_on_regression max_regression strict", *_OPTIONS)
"""The options that decide a run."""


def _apply(call: CommandCall, **given: Any) -> None:
    flags = GateFlags(**given)
    call.given |= {"strict": flags.strict, "regression": flags.regression(call.root, call.run)}
    if flags.fail_under:
        call.changes.append(lambda evaluation: with_more_gates(evaluation, flags.fail_under))


def with_more_gates(evaluation: Evaluation, gates: tuple[str, ...]) -> Evaluation:
    """Return an evaluation with further gates."""
    from keval_analysis.sections import Gates

    return evaluation.with_section(evaluation.section(Gates).with_gates(gates))


deciding = CommandOptions(_OPTIONS, _apply)
