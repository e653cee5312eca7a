"""Options that several commands share."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import attrs
import click

from keval.config.evaluation import Budget
from keval.errors import ConfigError, Problem
from keval.run.select import Selection
from keval.seams.results import results_folder

if TYPE_CHECKING:  # they import what `--help` does not need
    from keval.store.run import Run
    from keval_analysis.gates import Regression

F = TypeVar("F", bound=Callable[..., Any])

_POSITIVE = click.IntRange(min=1)


def _together(function: F, *options: Callable[[Any], Any]) -> F:
    return functools.reduce(lambda decorated, option: option(decorated), reversed(options), function)


def _gathered(name: str, make: Callable[..., object], names: str, *options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Return options as one, of whose values by these names the command gets only what `make` makes of them."""

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def with_one(**given: Any) -> Any:
            mine = {each: given.pop(each) for each in names.split()}
            return function(**{name: make(**mine)}, **given)

        return _together(with_one, *options)  # type: ignore[return-value]

    return decorate


json_option = click.option("--json", "as_json", is_flag=True, help="Print data for machines on stdout.")
_log_format_option = click.option(
    "--log-format",
    type=click.Choice(["text", "console", "json"]),
    default="text",
    show_default=True,
    help="Progress, failures and messages on stderr: for people (`console` is k-eval's name), or as lines of JSON.",
)
executor_option = click.option(
    "--executor", metavar="NAME", help="Run and score trials by this executor, if not by that of the config."
)
Detail: TypeAlias = Literal["first", "explained", "wide"]
"""How much of a report is printed: what one decides by, everything in sentences, or that with all figures as tables."""


detail_options = _gathered(
    "detail",
    lambda explain, wide: "wide" if wide else "explained" if explain else "first",
    "explain wide",
    click.option(
        "--explain", is_flag=True, help="Print all that was found, in sentences, and what may be hidden in it."
    ),
    click.option("--wide", is_flag=True, help="The same, and means and counts of everything, as tables."),
)
"""The options that ask for more of a report."""
_quiet_option = click.option("-q", "--quiet", is_flag=True, help="No progress and no report; errors only.")


class _LocalFolder(click.Path):
    """A folder of this machine."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the folder."""
        if "://" in str(value):
            self.fail(f"{value} is a URL; name a folder of this machine", param, ctx)
        return super().convert(value, param, ctx)


class _Results(click.Path):
    """A results directory: a folder, or the one in which results at a URL are worked on."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the folder. Raises ConfigError and PluginError."""
        return results_folder(value) if "://" in str(value) else Path(str(super().convert(value, param, ctx)))


local_folder_type = _LocalFolder(path_type=Path, file_okay=False)
results_type = _Results(path_type=Path, file_okay=False)
results_option = click.option(
    "-o",
    "--output-dir",
    type=results_type,
    default=Path("results"),
    show_default=True,
    help="The results directory, or a URL such as s3://bucket/prefix.",
)


@attrs.frozen
class GateFlags:
    """What the flags of a command say about gates: further ones, another run, and whether an undecided one fails.

    `max_regression` is `None` for the margin of each metric.
    """

    gates: tuple[str, ...]
    against: str | None
    max_regression: float | None
    strict: bool

    def regression(self, root: Path, run: Run | None = None) -> Regression | None:
        """Return the run that `run`, or a new one, is held against. Raises ConfigError or RunError: there is none."""
        if self.against is None:
            return None
        from keval.store.run import open_run
        from keval_analysis.gates import Regression  # with it, what reads runs is imported

        against = open_run(self.against, root)
        if run is not None and against.path.resolve() == run.path.resolve():
            told = "a run cannot be compared with itself; give the path or id of another run"
            raise ConfigError([Problem(f"--fail-on-regression {self.against}", told)])
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
        if not 0 <= size < math.inf:
            self.fail(f"expected a number of at least 0, or margin for the margin of each metric, got {value!r}")
        return size


def _gate_flags(*, fail_on_regression: str | None, max_regression: float | None, **flags: Any) -> GateFlags:
    if fail_on_regression is None and max_regression != 0:
        raise click.UsageError("--max-regression says how far means may drop; add --fail-on-regression RUN")
    return GateFlags(flags["fail_under"], fail_on_regression, max_regression, flags["strict"])


gate_options = _gathered(
    "gate_flags",
    _gate_flags,
    "fail_under fail_on_regression max_regression strict",
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
"""The options that decide a run."""


def view_option(function: F) -> F:
    """Add the option that shows the run in the browser; the command gets `viewers`, hook plugins of its run."""

    @functools.wraps(function)
    def with_view(*, view: bool, **rest: Any) -> Any:
        from keval.cli.viewing import viewing  # it imports what `--help` does not need

        with viewing(view) as viewers:
            return function(viewers=viewers, **rest)

    told = "Show the run in the browser while it runs and, in a terminal, afterwards until Ctrl-C."
    return click.option("--view", is_flag=True, help=told)(with_view)  # type: ignore[return-value]


class _Cap(click.ParamType[tuple[str, float]]):
    """One cap of a budget, such as `tokens=2000000` or `usd=0.5`."""

    name = "NAME=N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, float]:
        """Return the name and the number."""
        known = attrs.fields_dict(Budget)
        name, _, number = str(value).partition("=")
        digits = number.replace("_", "")
        if name not in known or not re.fullmatch(r"\d+(\.\d+)?" if name == "usd" else r"\d+", digits):
            self.fail(f"expected a number for one of {', '.join(known)}, such as tokens=2000000", param, ctx)
        return name, float(digits) if name == "usd" else int(digits)


budget_option = click.option(
    "--budget",
    type=_Cap(),
    multiple=True,
    metavar="NAME=N",
    help="Begin nothing more when `tokens`, `trials` or `usd` (US dollars) reach N.",
)
max_failures_option = click.option(
    "--max-failures", metavar="N|N%", help="Begin no other trial when more than so many failed."
)
judge_repetitions_option = click.option(
    "--judge-repetitions", type=_POSITIVE, metavar="N", help="Ask every judge N times about every answer."
)


_CHOSEN = "agent condition metric judge plugin model"
_CHOICE = [
    click.option(
        "--agent",
        multiple=True,
        metavar="NAME",
        help="Only this agent: a label, any installed one, or one with its main option: python:my_agent.py:answer.",
    ),
    click.option("--condition", multiple=True, metavar="LABEL", help="Only this condition."),
    click.option("--metric", multiple=True, metavar="NAME", help="Only this metric: a name, or any installed one."),
    click.option("--judge", multiple=True, metavar="NAME", help="Only this judge: a label, or any installed one."),
    click.option("-p", "plugin", multiple=True, metavar="NAME", help="Load a hook plugin; no:NAME leaves it out."),
    click.option(
        "-m",
        "--model",
        multiple=True,
        metavar="LABEL=PROVIDER/NAME",
        help="Ask an agent or judge another model.",
    ),
]
_NARROWING = [
    click.option(
        "--ablate",
        multiple=True,
        metavar="LABEL",
        help="Also run this condition without each of its tools, sections and skills.",
    ),
    click.option("--sample-id", multiple=True, metavar="ID", help="Only this sample."),
    click.option("--limit", type=_POSITIVE, metavar="N", help="Only the first N samples."),
    click.option("--repetitions", type=_POSITIVE, metavar="N", help="Ask every question N times."),
    judge_repetitions_option,
    click.option("-j", "--max-concurrent", type=_POSITIVE, metavar="N", help="At most N trials at once."),
    max_failures_option,
    budget_option,
    executor_option,
]


def _selection(**given: Any) -> Selection:
    plural = (*_CHOSEN.split(), "sample_id")
    chosen = {f"{name}s" if name in plural else name: value for name, value in given.items()}
    return Selection(**{**chosen, "budget": dict(given.get("budget", ()))})


choice_options = _gathered("selection", _selection, _CHOSEN, *_CHOICE)
"""The options that choose which plugins and conditions take part."""
selection_options = _gathered(
    "selection",
    _selection,
    f"{_CHOSEN} ablate sample_id limit repetitions judge_repetitions max_concurrent executor max_failures budget",
    *_CHOICE,
    *_NARROWING,
)
"""The options that choose plugins and narrow a run."""


def output_options(function: F) -> F:
    """Add the options on where results are kept and what is printed of them."""
    return _together(function, results_option, detail_options, json_option, _quiet_option, _log_format_option)
