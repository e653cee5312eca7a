"""`keval resume`: a run that was interrupted, or that should have more, goes on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import click

from keval.cli.call import CommandCall, CommandOptions, added_options
from keval.cli.display import display, tell_notices
from keval.cli.help import SectionedCommand
from keval.cli.messages import redactor
from keval.cli.options import Detail, budget_option, executor_option, max_failures_option, output_options
from keval.cli.session import carry_out, finish, log_watchers, prepared, tell_replaced
from keval.config.evaluation import Evaluation
from keval.config.load import load, rebuild
from keval.config.secrets import learn_config
from keval.config.variables import filling
from keval.errors import typed
from keval.records.manifest import Manifest
from keval.run.select import Selection, select
from keval.store.run import find_run

_POSITIVE = click.IntRange(min=1)


@click.command("resume", cls=SectionedCommand)
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
@max_failures_option
@budget_option
@added_options("resume")
@click.option("-j", "--max-concurrent", type=_POSITIVE, metavar="N", help="At most N trials at once.")
@executor_option
@output_options
def command(
    *,
    run: str,
    retry_failed: bool,
    add_repetitions: int | None,
    extend: Path | None,
    force: bool,
    max_failures: str | None,
    budget: tuple[tuple[str, float], ...],
    added: Mapping[CommandOptions, Mapping[str, Any]],
    max_concurrent: int | None,
    executor: str | None,
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

    log = log_watchers(log_format)
    found = find_run(run, output_dir)
    manifest = found.manifest
    # Told before plugins are constructed; `resume_run` looks again when it has locked the run.
    check_resumable(found.path, manifest, extended=extend is not None)
    remembered = {name: value for name, value in manifest.variables.items() if value is not None}
    hidden = redactor()
    with filling(remembered), CommandCall.begun(added, root=output_dir, config=extend, run=found) as call:
        evaluation = load(extend) if extend else rebuild(manifest, str(found.path / "manifest.json"))
        learn_config(hidden, evaluation)
        repetitions = _repetitions(evaluation, manifest, extend) + (add_repetitions or 0)
        wanted = Selection(
            repetitions=repetitions,
            max_concurrent=max_concurrent,
            executor=executor,
            max_failures=max_failures,
            budget=dict(budget),
        )
        # What the run was narrowed to before stays so.
        narrowed = attrs.evolve(wanted, limit=evaluation.limit, sample_ids=evaluation.sample_ids)
        plan = make_plan(prepared(call.changed(select(evaluation, narrowed))))
        if extend:  # those of the run's own config were shown when it began
            tell_notices(plan, quiet=quiet)
        done = len(found.known_trials.answered if retry_failed else found.known_trials)
        progress = display().progress(plan.trial_count, done, quiet=quiet)
        watchers = [("keval/progress", progress), *log, *call.watchers]
        options = RunOptions(watchers, hidden, record=call.record, given=call.given)
        resumption = Resumption(retry_failed=retry_failed, extended=extend is not None, force=force)
        resumed, summary = carry_out(
            resume_run(found, plan, resumption, options),
            progress,
            lambda: f"interrupted; `{typed('resume', found.path)}` continues it",
            stop=options.stop,
            grace=plan.evaluation.execution.grace_seconds,
        )
        tell_replaced(hidden.replaced, quiet=quiet)
        finish(resumed, summary, call.given, detail=detail, as_json=as_json, quiet=quiet)


def _repetitions(evaluation: Evaluation, manifest: Manifest, extend: Path | None) -> int:
    """Return how often a question is asked: as often as before, unless the config that extends the run says more."""
    given = evaluation.execution.num_repetitions
    return max(given, manifest.repetitions) if extend else given
