"""What the commands that run, score or report show of a run in the terminal."""

from __future__ import annotations

import shlex

from keval.cli.console import message_console, print_json, safe
from keval.cli.messages import logs_json
from keval.cli.options import Detail
from keval.cli.session import FAILED_GATE, exit_code
from keval.plan.plan import Plan
from keval.records.cassettes import REPLAY_MISS
from keval.store.run import Run
from keval.store.serialization import to_plain
from keval_analysis.findings.summary import Summary
from keval_analysis.seal import SealCheck
from keval_report.terminal.console import data_console, print_sections
from keval_report.terminal.progress import EventLog, Progress
from keval_report.totals import remedy
from keval_report.words import fitted, joined, run_place


def progress(trials: int, done: int = 0, *, quiet: bool = False) -> Progress:
    """Return the hook plugin that shows how far a run is."""
    return Progress(message_console(quiet=quiet), trials, done)


def event_log() -> EventLog:
    """Return the hook plugin that writes each event of a run as a line of JSON."""
    return EventLog()


def show_plan(plan: Plan, *, as_json: bool) -> None:
    """Print what a run would do."""
    from keval_report.terminal.planning import describe, print_plan

    if as_json:
        print_json(to_plain(describe(plan)))
    else:
        print_plan(plan, data_console())


def finish(run: Run, summary: Summary, *, as_json: bool, strict: bool, **more: object) -> None:
    """Print a run's report, and exit with its code."""
    code = exit_code(summary, strict=strict)
    show_end(run, summary, code, as_json=as_json, **more)  # type: ignore[arg-type]  # as its own parameters
    raise SystemExit(code)


def show_end(
    run: Run,
    summary: Summary,
    code: int,
    *,
    as_json: bool,
    detail: Detail = "first",
    quiet: bool = False,
    under_way: bool = False,
) -> None:
    """Print the report of a run that ends with this code; `detail` says how much of it.

    `under_way` says that a process is still writing to the run.
    """
    # A run that does not exit with 0 says why, also if it is to be quiet.
    messages = message_console(quiet=quiet and not code)
    if as_json:
        print_json(to_plain(summary))
    elif not quiet:
        from keval_analysis.claims import unverified_claims  # with --quiet and --json, nobody waits for these
        from keval_report.terminal.overview import print_report

        print_report(
            summary,
            data_console(),
            run.path,
            questions=run.manifest.dataset.samples,
            under_way=under_way,
            level=detail,
            claims=unverified_claims(run, summary),
        )
    # The report, which has the verdicts, is not shown then.
    if (as_json or quiet) and code == FAILED_GATE:
        from keval_report.gates import gate_lines, unmet_lines
        from keval_report.origin import decided_on

        verdicts = gate_lines(summary.gates, messages.width, "explained", decided_on(summary.replay))
        told = fitted((*verdicts, *unmet_lines(summary.unmet, "explained")), messages.width)
        print_sections([told], messages)
    if quiet and not summary.were_all_made():
        failed = sum(arm.failed for arm in summary.trials)
        scores = sum(arm.failed + arm.missing for arm in summary.arms)
        unrun = summary.planned - sum(arm.trials for arm in summary.trials)
        left = f", {unrun} were not run" if unrun else ""
        left += f" ({summary.stopped})" if summary.stopped else ""
        messages.print(f"{failed} of {summary.planned} trials failed{left}, {scores} scores failed or are missing")
    messages.print(safe(run_place(run.path)), soft_wrap=True)
    if summary.replay is not None and summary.replay.misses == "fail" and (missed := _missed(run, summary)):
        messages.print(safe(missed), soft_wrap=True)
    # Otherwise the report itself names the command.
    if (as_json or quiet or logs_json()) and not under_way and (lacking := remedy(summary, run.path)):
        messages.print(safe(f"to {lacking.does}: `{shlex.join(lacking.command)}`"), soft_wrap=True)


def _missed(run: Run, summary: Summary) -> str:
    """Return the first thing that the recording of a replayed run does not have, whole, and what to do about it."""
    if any(REPLAY_MISS in kind for arm in summary.trials for kind in arm.failures):
        failed = ((trial.id, trial.failure) for trial in run.trials() if trial.failure is not None)
    elif any(REPLAY_MISS in kind for arm in summary.arms for kind in arm.failures):
        lines = run.scores()
        failed = ((f"{line.judge} of {line.trial}", line.failure) for line in lines if line.failure is not None)
    else:
        return ""
    ask = "`--replay-misses live` calls models and servers for requests that are not in the recording"
    first = next((f"{who}: {failure.message}" for who, failure in failed if failure.kind == REPLAY_MISS), "")
    return f"{first}\n{ask}"


def tell_changed(*checks: SealCheck) -> None:
    """Tell on stderr which files of runs changed after these had ended, if any did."""
    for check in checks:
        if changed := check.changed():
            told = f"caution: {joined(changed)} of {run_place(check.run.path)} changed after the run ended"
            message_console().print(safe(told, "yellow"), soft_wrap=True)
