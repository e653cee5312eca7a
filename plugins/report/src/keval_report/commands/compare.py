"""`keval compare`: the arms of a run, or of several runs."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from keval.cli.options import json_option, results_option
from keval.errors import RunError
from keval.store.run import find_run

if TYPE_CHECKING:  # they import what `--help` does not need
    from keval_analysis.seal import SealCheck
    from keval_report.claims import Level

_LISTED = 10
"""How many samples and trials that differ are shown without `--limit`."""


def _pairs(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str] | None:
    """Read `A=B` as agent B with the agent A that it is compared with."""
    pairs: dict[str, str] = {}
    for value in values:
        first, equals, other = value.partition("=")
        if not (first and equals and other):
            raise click.BadParameter(f"{value!r} is no pair; write A=B, with A of the first run and B of the others")
        if other in pairs:
            raise click.BadParameter(f"{other!r} is paired twice; keep one, and compare with the other by itself")
        pairs[other] = first
    return pairs or None


@click.command("compare")
@click.argument("runs", nargs=-1, required=True, metavar="RUN [RUN]...")
@click.option(
    "--agent",
    "agents",
    multiple=True,
    callback=_pairs,
    metavar="A=B",
    help="Compare agent B of the other runs with agent A of the first, and only agents that are so named.",
)
@click.option("--explain", is_flag=True, help="Print every effect, and what may be hidden in it.")
@click.option("--exact", is_flag=True, help="Say whether two runs are the same, trial by trial; exits with 1 if not.")
@click.option("--times", is_flag=True, help="With --exact: compare when and how long, too.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"With --exact: list at most N samples and trials.  [default: {_LISTED}, all with --json]",
)
@results_option
@json_option
def command(
    *,
    runs: tuple[str, ...],
    agents: dict[str, str] | None,
    explain: bool,
    exact: bool,
    times: bool,
    limit: int | None,
    output_dir: Path,
    as_json: bool,
) -> None:
    """Compare the arms of RUN, or of several runs: every arm with the same arm of the first RUN.

    Arms are the same by their names, or if each run has one agent, whatever its name. A RUN is a path, an id or its
    start, or `latest`. For several runs, what else differs between them comes first, and the samples that got worse and
    better last.

    With --exact, runs are compared in canonical form, without what says when, where and how fast a run was made; so a
    replayed run is the same as its recording.
    """
    from keval.cli.console import print_json, safe
    from keval_analysis.comparison import compare_runs  # what a run needs to be compared takes a while to import
    from keval_analysis.seal import SealCheck
    from keval_report.display import tell_changed
    from keval_report.terminal.comparison import describe_comparisons, describe_run, print_arms, print_comparisons
    from keval_report.terminal.console import data_console

    checks = [SealCheck(find_run(run, output_dir)) for run in runs]
    first, *others = (check.run for check in checks)
    # An id, a path and `latest` may name the same run.
    named = [run.path.resolve() for run in (first, *others)]
    if len({*named}) < len(named):
        raise RunError(f"a run is compared with itself: {', '.join(runs)} name the same run; name another one")
    if exact or times or limit:
        if not exact or len(runs) != 2 or agents or explain:
            raise click.UsageError(
                "--exact compares two runs, without --agent or --explain; --times and --limit need it"
            )
        _compare_exactly(checks, times=times, limit=limit or (None if as_json else _LISTED), as_json=as_json)
    level: Level = "explained" if explain else "first"
    if others:
        comparisons = [compare_runs(run, first, agents) for run in others]
        tell_changed(*checks)
        if as_json:
            print_json(describe_comparisons(comparisons))
            return
        console = data_console()
        print_comparisons(comparisons, console, level)
        if not explain:
            paired = [f"--agent={one}={other}" for other, one in (agents or {}).items()]
            more = shlex.join(["keval", "compare", *runs, *paired, "--explain"])
            console.print(safe(f"\nmore     all effects: {more}", "dim"), soft_wrap=True)
        return
    if agents is not None:
        raise click.UsageError("--agent pairs the agents of two runs; name another run")
    summary, questions = first.summary(), first.manifest.dataset.samples
    tell_changed(*checks)
    if as_json:
        print_json(describe_run(summary))
    else:
        print_arms(summary, data_console(), questions=questions, level=level)


def _compare_exactly(checks: list[SealCheck], *, times: bool, limit: int | None, as_json: bool) -> NoReturn:
    """Print what differs between two runs, and end with 0 if nothing does."""
    from keval.cli.console import print_json
    from keval_replay.run_diff import diff_runs  # what reads runs takes a while to import
    from keval_report.display import tell_changed
    from keval_report.terminal.comparison import describe_diff, print_diff
    from keval_report.terminal.console import data_console

    found = diff_runs(*(check.run for check in checks), times=times, limit=limit)
    tell_changed(*checks)
    print_json(describe_diff(found)) if as_json else print_diff(found, data_console())
    raise SystemExit(0 if found.equal else 1)
