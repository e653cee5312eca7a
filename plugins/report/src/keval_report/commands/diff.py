"""`keval diff`: whether two runs are the same, and what differs."""

from __future__ import annotations

from pathlib import Path

import click

from keval.cli.options import json_option, results_option
from keval.errors import RunError
from keval.store.run import find_run

_LISTED = 10
"""How many samples and trials that differ are shown without `--limit`."""


@click.command("diff")
@click.argument("before", metavar="RUN")
@click.argument("now", metavar="RUN")
@click.option("--times", is_flag=True, help="Compare when and how long, too.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"List at most N samples and trials.  [default: {_LISTED}, all with --json]",
)
@results_option
@json_option
def command(before: str, now: str, *, times: bool, limit: int | None, output_dir: Path, as_json: bool) -> None:
    """Say whether the second RUN is the same as the first, trial by trial, and what differs.

    A RUN is a path, an id or its start, or `latest`. Runs are compared in canonical form, without what says when, where
    and how fast a run was made; so a replayed run is the same as its recording. Exits with 1 if they differ.
    """
    from keval.cli.console import print_json
    from keval_analysis.seal import SealCheck
    from keval_replay.run_diff import diff_runs  # what reads runs takes a while to import
    from keval_report.display import tell_changed
    from keval_report.terminal.comparison import describe_diff, print_diff
    from keval_report.terminal.console import data_console

    runs = [find_run(run, output_dir) for run in (before, now)]
    if len({run.path.resolve() for run in runs}) < len(runs):
        raise RunError(f"a run is compared with itself: {before} and {now} name the same run; name another one")
    checks = [SealCheck(run) for run in runs]
    found = diff_runs(*(check.run for check in checks), times=times, limit=limit or (None if as_json else _LISTED))
    tell_changed(*checks)
    print_json(describe_diff(found)) if as_json else print_diff(found, data_console())
    raise SystemExit(0 if found.equal else 1)
