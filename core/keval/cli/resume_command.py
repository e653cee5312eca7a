"""`keval resume`: a run that was interrupted, or that should have more, goes on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import click

from keval.cli.console import message_console
from keval.cli.messages import redactor
from keval.cli.options import (
    Detail,
    GateFlags,
    budget_option,
    executor_option,
    gate_options,
    max_failures_option,
    output_options,
    view_option,
)
from keval.cli.session import ablated, carry_out, finish, log_watchers, tell_replaced
from keval.config.evaluation import Evaluation
from keval.config.load import load, rebuild
from keval.config.secrets import learn_config
from keval.config.variables import filling
from keval.records.manifest import Manifest
from keval.run.select import Selection, select
from keval.store.run import find_run
from keval_report.terminal.planning import print_notices

if TYPE_CHECKING:  # it imports what `--help` does not need
    from keval.run.active_run import Watchers

_POSITIVE = click.IntRange(min=1)


@click.command("resume")
@click.argument("run")
@click.option("--retry-failed", is_flag=True, help="Also run failed trials again.")
@click.option("--add-repetitions", type=_POSITIVE, metavar="N", help="Ask every question N more times.")
@click.option(
    "--extend",
    type=click.Path(path_type=Path),
    metavar="CONFIG",
    help="Read this config, and run the samples, agents and conditions that it adds.",
)
@click.option("--force", is_flag=True, help="Resume even if something changed; the manifest then says what.")
@click.option("--record", is_flag=True, help="Record traffic from now on; a recorded run does so anyway.")
@max_failures_option
@budget_option
@gate_options
@click.option("-j", "--max-concurrent", type=_POSITIVE, metavar="N", help="At most N trials at once.")
@executor_option
@view_option
@output_options
def command(
    *,
    run: str,
    retry_failed: bool,
    add_repetitions: int | None,
    extend: Path | None,
    force: bool,
    record: bool,
    max_failures: str | None,
    budget: tuple[tuple[str, float], ...],
    gate_flags: GateFlags,
    max_concurrent: int | None,
    executor: str | None,
    viewers: Watchers,
    output_dir: Path,
    detail: Detail,
    as_json: bool,
    quiet: bool,
    log_format: str,
) -> None:
    """Go on with RUN: a path, an id or its start, or `latest`. Trials that it has are not run again.

    The run's manifest is the config. If the dataset, a plugin, a variable or a server's tools changed since the run
    began, it is refused with the differences. Scores that are missing are made afterwards.
    """
    from keval.plan.build import make_plan
    from keval.run.active_run import RunOptions
    from keval.run.flow import resume_run
    from keval.run.resumption import Resumption, check_resumable
    from keval_report.terminal.progress import Progress

    log = log_watchers(log_format)
    found = find_run(run, output_dir)
    manifest = found.manifest
    check_resumable(found.path, manifest, extended=extend is not None)
    remembered = {name: value for name, value in manifest.variables.items() if value is not None}
    hidden = redactor()
    with filling(remembered):
        evaluation = load(extend) if extend else rebuild(manifest, str(found.path / "manifest.json"))
        learn_config(hidden, evaluation)
        repetitions = _repetitions(evaluation, manifest, extend) + (add_repetitions or 0)
        wanted = Selection(
            repetitions=repetitions,
            max_concurrent=max_concurrent,
            executor=executor,
            max_failures=max_failures,
            budget=dict(budget),
            gates=gate_flags.gates,
            # A run keeps the conditions that ablation has added to it.
            ablate=tuple(manifest.config.get("ablated", ())) if extend else (),
        )
        # What the run was narrowed to before stays so.
        narrowed = attrs.evolve(wanted, limit=evaluation.limit, sample_ids=evaluation.sample_ids)
        plan = make_plan(ablated(select(evaluation, narrowed)))
        regression = gate_flags.regression(output_dir, found)
        messages = message_console(quiet=quiet)
        if extend:  # those of the run's own config were shown when it began
            print_notices(plan, messages)
        done = len(found.known_trials.answered if retry_failed else found.known_trials)
        progress = Progress(messages, plan.trial_count, done)
        watchers = [("keval/progress", progress), *log, *viewers]
        options = RunOptions(watchers, hidden, regression=regression, record=record)
        resumption = Resumption(retry_failed=retry_failed, extended=extend is not None, force=force)
        resumed, summary = carry_out(
            resume_run(found, plan, resumption, options),
            progress,
            lambda: f"interrupted; `keval resume {found.path}` continues it",
            stop=options.stop,
            grace=plan.evaluation.execution.grace_seconds,
        )
    tell_replaced(hidden.replaced, quiet=quiet)
    finish(resumed, summary, detail=detail, as_json=as_json, quiet=quiet, strict=gate_flags.strict)


def _repetitions(evaluation: Evaluation, manifest: Manifest, extend: Path | None) -> int:
    """Return how often a question is asked: as often as before, unless the config that extends the run says more."""
    given = evaluation.execution.num_repetitions
    return max(given, manifest.repetitions) if extend else given
