"""`keval check`: whether the checks of a config can be passed, and are not passed by doing nothing."""

from __future__ import annotations

from pathlib import Path

import click

from keval.plugin import RunOptions, counted, foreign, learn_config, load, print_json, redactor, run_to_end, to_plain


@click.command()
@click.argument("config", type=click.Path(path_type=Path))
@click.option("--condition", metavar="NAME", help="Examine under this condition.  [default: the first one]")
@click.option("--json", "as_json", is_flag=True, help="Print data for machines on stdout.")
def check(*, config: Path, condition: str | None, as_json: bool) -> None:
    """Run the checks of CONFIG on every sample's solution, and on nothing done, without a model.

    A sample's `solution:` is done in a fresh workspace, and every check must pass; in another one nothing is done, and
    at least one check must fail. What is not so is named, and the exit code is 1.
    """
    from keval_checks.examination import narrowed, oracle  # it takes what a run takes

    evaluation = load(config)
    learn_config(redactor(), evaluation)
    examination = run_to_end(oracle(narrowed(evaluation, condition), RunOptions(redactor=redactor())))
    if as_json:
        print_json(
            {
                "rows": [to_plain(row) for row in examination.rows],
                "wrong": len(examination.wrong),
                "without_solution": examination.without_solution,
            }
        )
    else:
        for row in examination.wrong:
            which = f", check {row.check!r}" if row.check is not None else ""
            click.echo(foreign(f"{row.sample}: {row.examination}{which}: {row.reason}"))
        samples, wrong = (len({row.sample for row in rows}) for rows in (examination.rows, examination.wrong))
        found = f", {wrong} with problems" if wrong else " without problems"
        rest = f"; {counted(examination.without_solution, 'sample')} without a solution"
        click.echo(f"{counted(samples, 'sample')} examined{found}{rest if examination.without_solution else ''}")
    if examination.wrong:
        raise SystemExit(1)
