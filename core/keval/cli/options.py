"""Options that several commands share."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import attrs
import click

from keval.config.evaluation import Budget
from keval.run.select import Selection
from keval.seams.results import results_folder

F = TypeVar("F", bound=Callable[..., Any])

_POSITIVE = click.IntRange(min=1)


def together(function: F, *options: Callable[[Any], Any]) -> F:
    return functools.reduce(lambda decorated, option: option(decorated), reversed(options), function)


def gathered(name: str, make: Callable[..., object], names: str, *options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Return options as one, of whose values by these names the command gets only what `make` makes of them."""

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def with_one(**given: Any) -> Any:
            mine = {each: given.pop(each) for each in names.split()}
            return function(**{name: make(**mine)}, **given)

        return together(with_one, *options)  # type: ignore[return-value]

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
Detail: TypeAlias = Literal["first", "explained"]
"""How much of a report is printed: what one decides by, or everything in sentences."""


def detail_option(function: F) -> F:
    """Add the option that asks for more of a report, also by its old name."""
    told = "Print all that was found, in sentences, and what may be hidden in it."
    old = click.option("--wide", "detail", flag_value="explained", default="first", hidden=True)
    return together(
        function, click.option("--explain", "detail", flag_value="explained", default="first", help=told), old
    )


_quiet_option = click.option("-q", "--quiet", is_flag=True, help="No progress and no report; errors only.")


class _LocalFolder(click.Path):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
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


class _Cap(click.ParamType[tuple[str, float]]):
    """One cap of a budget, such as `tokens=2000000` or `usd=0.5`."""

    name = "NAME=N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, float]:
        known = attrs.fields_dict(Budget)
        name, _, number = str(value).partition("=")
        digits = number.replace("_", "")
        # `float` alone would take `nan`, `inf` and numbers below 0.
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
        "-m", "--model", multiple=True, metavar="[LABEL=]PROVIDER/NAME", help="Ask all, or one, another model."
    ),
]
_NARROWING = [
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


choice_options = gathered("selection", _selection, _CHOSEN, *_CHOICE)
"""The options that choose which plugins and conditions take part."""
selection_options = gathered(
    "selection",
    _selection,
    f"{_CHOSEN} sample_id limit repetitions judge_repetitions max_concurrent executor max_failures budget",
    *_CHOICE,
    *_NARROWING,
)
"""The options that choose plugins and narrow a run."""


def output_options(function: F) -> F:
    """Add the options on where results are kept and what is printed of them."""
    return together(function, results_option, detail_option, json_option, _quiet_option, _log_format_option)
