"""`keval history`: the finished runs of evaluations over time, and what each of them changed."""

from __future__ import annotations

from pathlib import Path

import click

from keval.cli.options import json_option, results_option
from keval.errors import RunError, suggestion
from keval.store.run import Run, find_run, list_runs

_LISTED = 10
"""How many runs of an evaluation are shown without `--limit`."""


@click.command("history")
@click.option("--evaluation", "names", multiple=True, metavar="NAME", help="Only this evaluation.")
@click.option("--metric", metavar="NAME", help="Follow this metric, or this rubric by one judge: NAME@JUDGE.")
@click.option("--agent", "agents", multiple=True, metavar="NAME", help="Only this agent.")
@click.option("--condition", "conditions", multiple=True, metavar="LABEL", help="Only this condition.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"Only the N newest runs.  [default: {_LISTED}, all in data]",
)
@click.option(
    "--changes", multiple=True, metavar="RUN", help="Tell in full what RUN changed; given twice, between two runs."
)
@click.option("--sqlite", type=click.Path(path_type=Path, dir_okay=False), help="Also write all to this SQLite file.")
@results_option
@json_option
def command(
    *,
    names: tuple[str, ...],
    metric: str | None,
    agents: tuple[str, ...],
    conditions: tuple[str, ...],
    limit: int | None,
    changes: tuple[str, ...],
    sqlite: Path | None,
    output_dir: Path,
    as_json: bool,
) -> None:
    """Show the finished runs of each evaluation, the newest first: a metric of each arm, and what each run changed.

    The figures are those of each run's own report. A run is held against the latest earlier one that asked the same
    questions, or else the latest earlier one. Without --metric, the config's first primary metric is followed, or its
    first.
    """
    from keval.cli.console import print_json
    from keval.cli.messages import tell
    from keval_analysis.history.database import open_history, write_history
    from keval_analysis.history.trends import (  # what a run imports need not wait for it
        TrendChoice,
        evaluations_of,
        trend_of,
    )
    from keval_report.history import describe_history, left_out_texts, print_history
    from keval_report.terminal.console import data_console

    if changes:
        _print_changes(changes, output_dir, as_json=as_json)
        return
    runs = list_runs(output_dir)
    if not runs:
        tell(f"no runs under {output_dir}; `keval run CONFIG` makes one")
        if as_json:
            print_json([])
        return
    # Programs get all runs; only for people there is a usual limit.
    choice = TrendChoice(metric, agents, conditions, limit or (None if as_json else _LISTED))
    with open_history(runs) as database:
        if sqlite is not None:
            write_history(database, sqlite)
        known = evaluations_of(database)
        for name in names:
            if name not in known:
                hint = suggestion(name, known) or f"; there are runs of {', '.join(known) or 'none'}"
                raise RunError(f"no finished run of {name!r}{hint}")
        found = [trend_of(database, name, choice) for name in known if name in (names or known)]
        left = dict(database.execute("SELECT run, reason FROM left_out ORDER BY run"))
    trends = [trend for trend in found if trend is not None and trend.series]
    for line in left_out_texts(left):
        tell(line)
    if as_json:
        print_json(describe_history(trends, output_dir))
    elif not trends:
        tell("no finished run has what was asked for")
    else:
        print_history(trends, data_console(), output_dir)


def _print_changes(named: tuple[str, ...], root: Path, *, as_json: bool) -> None:
    """Print what a run changed against the run before it, or what the second of two differs in from the first."""
    from keval.cli.console import print_json
    from keval_analysis.history.database import key_of, open_history
    from keval_analysis.history.trends import run_before
    from keval_report.history import describe_changes, print_changes
    from keval_report.terminal.console import data_console

    if len(named) > 2:
        raise click.UsageError("--changes tells of one run, or of two; name no more")
    *others, now = (find_run(name, root) for name in named)
    root = now.path.parents[1]
    if not others:
        with open_history(list_runs(root)) as database:
            before = run_before(database, key_of(now))
        if before is None:
            told = "is unfinished, or the first of its evaluation; add --changes OTHER to hold it against another run"
            raise RunError(f"{now.path} {told}")
        others = [Run(root / before)]
    print_json(describe_changes(now, others[0])) if as_json else print_changes(now, others[0], data_console())
